-- Fragment: the queue of a semaphore whose permits have neither ids nor leases.
--
--   queue    sorted set: entry -> since when it waits, in µs: its ticket
--   calls    sorted set: entry that was called -> ms until which permits are kept for it
--   bar      string '<ms> <entry>': a large request that others may not overtake: see openBar
--   entry    '<client>:<number of the operation> <permits>'; used for one wait
--   keeping  ms for which permits are kept for a client that was called
--
-- Nothing is given to a client before it takes it, so no permit is lost with a message or a client.
-- The script that finds permits free calls the first entry for which they suffice, 64 entries at
-- most: it takes the entry out of the queue, keeps the permits for it for a moment, and tells its
-- client
--
--   "call <permits> <client>:<number of the operation> <key>"
--
-- A client that comes too late gets its place back by its ticket. A call costs 5 commands.
--@needs key total queue calls bar keeping publish channel clients suffix counts
--@include shared/clock
--@include semaphore/state
--@include shared/listened
--@include queue/poller
--@include queue/strangers
keeping = tonumber(keeping)
local callsAtOnce, passedAtOnce = 64, 64
local longestBar = 60000

-- wanted returns how many permits an entry wants, 0 if it is damaged.
local function wanted(entry)
  return tonumber(string.match(entry, ' (%d+)$') or '') or 0
end

local keptFor = -1 -- ms until the first of the permits that serve has found kept are free, -1 if it found none

-- kept returns how many permits are kept for those that were called. A time too far in the future
-- is from before the clock of the server was set back, and is over too.
local function kept()
  local sum, over, all = 0, false, redis.call('zrange', calls, '0', '-1', 'withscores')
  for i = 1, #all, 2 do
    local left = all[i + 1] - clock()
    if left > 0 and left <= keeping then
      sum = sum + wanted(all[i])
      keptFor = keptFor < 0 and left or keptFor
    else
      over = true
    end
  end
  if over then
    redis.call('zremrangebyscore', calls, '-inf', string.format('%.0f', clock()))
    redis.call('zremrangebyscore', calls, string.format('(%.0f', clock() + keeping), '+inf')
  end
  return sum
end

-- keep keeps permits for an entry for some ms.
local function keep(entry, ms)
  redis.call('zadd', calls, string.format('%.0f', clock() + ms), entry)
  redis.call('pexpire', calls, string.format('%.0f', 60 * keeping))
end

-- inbox returns the channel of the client of an entry, and its operation, '' if it is damaged.
local function inbox(entry)
  local name, client = string.match(entry, '^((%S+):%d+) ')
  return clients .. (client or '') .. suffix, name or ''
end

-- reach sends a message to the client of an entry, and reports whether it may have arrived.
local function reach(entry, word, n)
  local to, name = inbox(entry)
  if name == '' then
    return false
  end
  return tell(publish, to, string.format('%s %d %s %s', word, n, name, key)) ~= 0 or counts ~= '1'
end

-- pollTime returns the member of the queue that says when the client of an entry polls.
local function pollTime(entry)
  return '~' .. select(2, inbox(entry))
end

-- whenPolls returns what pollsIn does, for an entry.
local function whenPolls(entry)
  return pollsIn(pollTime(entry), redis.call('zscore', queue, entry))
end

-- barred returns the entry whose bar is remembered, nil if none is, and whether the bar is up.
local function barred()
  local ms, entry = string.match(tostring(redis.pcall('get', bar)), '^(%d+) (.*)$')
  return entry, ms and redis.call('pttl', bar) > tonumber(ms)
end

-- openBar keeps others from overtaking the first entry, which wants more permits than are free. A
-- bar is up for ms, or half of the time for which the entry has waited, and is then down for as
-- long. So a request that can never be satisfied takes permits from others for half of the time,
-- and a large request gets them when a bar is longer than the others use them.
local function openBar(entry, ms, ticket)
  local waited = clock() - tonumber(ticket) / 1000
  ms = math.max(ms, math.min(waited / 2, longestBar))
  redis.call('set', bar, string.format('%.0f %s', ms, entry), 'px', string.format('%.0f', 2 * ms), 'nx')
end

-- closeBar forgets the bar of an entry that waits no more.
local function closeBar(entry)
  if wanted(entry) > 1 and barred() == entry then
    redis.call('del', bar)
  end
end

-- serve calls those in the queue for which the free permits suffice, in their order, up to the
-- asker. It returns whether the asker may take its permits, and how many permits are left that
-- nobody in the queue has been called for. first is the first entry, if the caller knows it.
--
-- An entry that wants more than there are in all is dropped. Another one that wants too many is
-- passed over, unless its bar is up. If it is the first and no bar is remembered, its client is
-- told to ask, which opens one. A client that is gone holds up nobody: its bar is closed. A poller
-- that is not about to poll is passed over.
local function serve(free, asker, first)
  local spare, called, passed = free > 0 and free - kept() or 0, 0, 0
  local entries, at, all, of, up = {first}, 0, nil, nil, nil
  while spare > 0 and called < callsAtOnce and passed < passedAtOnce do
    at = at + 1
    if not entries[at] then
      entries, at = redis.call('zrange', queue, passed, passed + 3), 1
    end
    local entry = entries[at]
    if not entry then
      return false, spare
    end
    local n = wanted(entry)
    if n > spare and not all then
      all, of, up = tonumber(redis.call('get', total) or nil) or most, barred()
    end
    if n > 0 and n <= spare then
      if entry == asker then
        return true, spare
      end
      local reached, polls = reach(entry, 'call', n), nil
      if not reached or counts ~= '1' then
        polls = whenPolls(entry)
      end
      if polls == false then
        passed = passed + 1
      else
        redis.call('zrem', queue, entry)
        if reached or polls then
          keep(entry, keeping)
          spare, called = spare - n, called + 1
        end
      end
    elseif string.sub(entry, 1, 1) == '~' then -- there are no more entries
      return false, spare
    elseif n < 1 or n > all then
      redis.call('zrem', queue, entry)
    elseif of == entry and up then
      if entry == asker or counts ~= '1' or listened(inbox(entry)) or whenPolls(entry) ~= nil then
        return false, spare
      end
      redis.call('zrem', queue, entry)
      redis.call('del', bar)
      of = nil
    elseif passed == 0 and not of and entry ~= asker and not reach(entry, 'ask', 0) and whenPolls(entry) == nil then
      redis.call('zrem', queue, entry)
    else
      passed = passed + 1
    end
  end
  return asker ~= nil and passed == passedAtOnce and wanted(asker) <= spare, spare
end

-- tellStrangers announces permits. Clients of this library ignore a message on channel after one on
-- waits: see queue/strangers.lua.
local function tellStrangers(permits, waits)
  tell(publish, waits, '1')
  announce(permits)
end

-- offer lets others have the free permits. If nobody is in the queue, all that listen on channel
-- get a message. Otherwise one permit is kept for strangers for a moment if it is their turn, and
-- they get a message, also if permits are left when the queue has been served, because they do not
-- poll. If short is true, they have no turn. offer returns how many strangers listen, 0 without a
-- queue.
local function offer(free, waits, short)
  local first = free > 0 and redis.call('zrange', queue, '0', '0')[1]
  if not first then
    announce(free)
    return 0
  end
  local strangersPause, n = 1, strangers(channel, waits)
  local turn = not short and theirTurn(n, queue)
  if turn then
    keep('strangers 1', math.min(strangersPause, keeping))
    tellStrangers(free, waits)
    while first and not reach(first, 'ask', strangersPause) and whenPolls(first) == nil do
      redis.call('zrem', queue, first)
      first = redis.call('zrange', queue, '0', '0')[1]
    end
  end
  local _, spare = serve(free, nil, first)
  if spare > 0 and not turn then
    tellStrangers(spare, waits)
  end
  return n
end
