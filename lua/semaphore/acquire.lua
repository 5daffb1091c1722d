-- Acquire permits of a semaphore, all or none (Redisson RSemaphore), or wait in its queue.
--
--@keys key total note kind queue calls bar
--@args number entry keeping publish channel clients suffix counts ms ticket poll=''
--
--   ms      '' for a single attempt, else the shortest ms of a bar
--   ticket  of an earlier call, or ''
--   poll    '', or the ms after which a poller polls again (see queue/poller.lua)
--
-- Reply   status OK: acquired
--         array: refused, single attempt; -1; how many permits are available, and how many there are
--         in total, -1 if that is not known
--         array: refused; for the first in the queue, ms until permits that are kept for others are
--         free, else -1; the same; the ticket; 0 in the queue, 2 not in the queue: it wants more than
--         there are in total; and for a poller, ms after which it is to poll
--         error LATCHKEY_UNSET: see semaphore/state.lua
--
-- While others wait, free permits go to the first of the queue, and not to the caller.
--
-- Cost: 8 commands if nobody waits, about 20 to join the queue, 4 more for a poller, and the calls
-- of others; O(log w) in those that wait. Idempotent: the operation is noted, and an entry is
-- queued once.
ms = tonumber(ms)
--@include shared/op
--@include semaphore/state

local done, past = recall()
if done or past then
  return past or redis.status_reply('OK')
end
local free, wrong = look()
if not free then
  return wrong or unset()
end
local n = tonumber(string.match(entry, ' (%d+)$'))

-- take makes the operation have its permits.
local function take()
  redis.call('decrby', key, n)
  local noted = redis.pcall('set', note, number .. ' ' .. n, 'px', memory)
  if noted['err'] then -- without the note nobody could give them back
    redis.call('incrby', key, n)
    return noted
  end
  free = free - n
  return redis.status_reply('OK')
end

-- inTotal returns how many permits there are in total, -1 if that is not known.
local function inTotal()
  return tonumber(redis.pcall('get', total) or nil) or -1
end

if ticket == '' and redis.call('exists', queue, calls) == 0 then -- the usual case
  if free >= n then
    return take()
  elseif not ms then
    --@include shared/only_master
    return {-1, free, inTotal()}
  end
end

--@include semaphore/serve
local poller = pollTime(entry)

-- join puts the entry into the queue, with the ticket that its client knows, even if a late copy
-- has put it back with another. It returns the ticket if the entry was not there.
local function join()
  clock()
  local since = ticket == '' and moment or ticket
  local new = redis.call('zadd', queue, ticket == '' and 'nx' or 'lt', since, entry) == 1
  if not new and poll == '' then
    redis.call('zrem', queue, poller) -- it listens now
  end
  redis.call('pexpire', queue, '60000')
  return new and since
end

local called, since = redis.call('zrem', calls, entry) == 1 and free >= n, nil
if not called then
  since = join()
end
if called or serve(free, entry) then
  local reply = take()
  if not called or poll ~= '' then
    redis.pcall('zrem', queue, entry, poller)
  end
  closeBar(entry)
  pcall(serve, free)
  return reply
elseif not ms then
  redis.call('zrem', queue, entry)
  return {-1, free, inTotal()}
end
local all = inTotal()
if free > 0 and all >= 0 and n > all then
  redis.call('zrem', queue, entry, poller)
  return {-1, free, all, ticket ~= '' and ticket or '0', 2}
end
since = string.format('%.0f', tonumber(since or redis.call('zscore', queue, entry)))
local first = (n > 1 or keptFor >= 0) and redis.call('zrange', queue, '0', '0')[1] == entry
if n > 1 and first then
  openBar(entry, ms, since)
end
local pollIn = poll ~= '' and pollsAgain(poller, entry, since, poll) or nil
return {first and keptFor or -1, free, all, since, 0, pollIn}
