-- Fragment: a latch.
--
--   key    string: the count, Redisson's; deleted when it reaches zero
--   latch  hash: what Redisson does not keep
--            round  the current or last round: µs when it began; it only grows
--            state  set, open, deleted or expired
--            until  ms at which the round expires, if it does
--            past   the last rounds that are over, in order
--            gone   those among the last rounds that ended before they opened
--   done   set: participants that have counted in this round
--   kind   of a latch that this library has set, for as long as it is closed or open
--
-- A round ends when the count reaches zero, or when the latch is deleted or expires. The hash
-- remains, for a while only if the latch was deleted or has expired, so that waiters of the round
-- learn the outcome, even if another round has begun.
--@needs key latch done kind
local remembered = 600000 -- ms
local rounds = 8 -- in past and in gone

local mine = 'latch'
--@include shared/tell
--@include shared/number_kind
--@include shared/clock

local left, round, state, ends, past, gone

local function integer(n)
  return string.format('%.0f', n)
end

-- pass lets the rest of the script write on a full server.
local function pass()
  redis.call('hdel', latch, '-')
end

local function words(list)
  local _, n = string.gsub(list, '%d+', '')
  return n
end

local function append(list, each)
  list = list == '' and each or list .. ' ' .. each
  if words(list) > rounds then
    list = string.match(list, '^%d+ (.*)$')
  end
  return list
end

local function listed(list, each)
  return string.find(' ' .. list .. ' ', ' ' .. each .. ' ', 1, true)
end

-- begin starts a round that expires at the given ms, or never.
local function begin(at)
  pass()
  clock()
  round = integer(math.max(micros, tonumber(round) + 1))
  state, ends = 'set', at
  redis.call('hset', latch, 'round', round, 'state', state)
  if at then
    redis.call('hset', latch, 'until', integer(at))
    redis.call('pexpireat', latch, integer(at + remembered))
    redis.call('pexpireat', kind, integer(at))
  else
    redis.call('hdel', latch, 'until')
    redis.call('persist', latch)
    redis.call('persist', kind)
  end
  redis.call('del', done)
end

-- finish ends the round: open, deleted or expired.
local function finish(how)
  pass()
  state, past = how, append(past, round)
  redis.call('hset', latch, 'state', state, 'past', past)
  if how ~= 'open' then
    gone = append(gone, round)
    redis.call('hset', latch, 'gone', gone)
    redis.call('del', kind)
  elseif ends then
    redis.call('pexpireat', kind, integer(ends + remembered))
  end
  redis.call('del', done)
end

-- overdue returns how a round with an expiry was ended by something other than its own last count,
-- nil if it was not. Redisson may have set the next count since: its key has no expiry. In the last
-- millisecond of a round its own key still exists.
local function overdue(value)
  local late = clock() >= ends -- read before the time that is left
  local ttl = value and redis.call('pttl', key) or -2
  if late and ttl ~= 0 then
    return 'expired'
  elseif ttl == -1 then
    return 'open' -- counted down or deleted: the keys do not show which
  end
end

-- expiry returns the ms at which the key expires, no later than it does; nil if it does not.
local function expiry()
  local at, ttl = clock(), redis.call('pttl', key)
  return ttl >= 0 and at + ttl or nil
end

-- look reads the state, and notes what Redisson or time has done to it. It returns the count. The
-- second result is an error if it is another kind of object.
local function look()
  local value = redis.call('get', key)
  left = numberIn(value or '0')
  if not left then
    return nil, redis.error_reply('WRONGTYPE the key holds no count')
  end
  local wrong, marked = otherKind(value)
  if wrong then
    return nil, wrong
  end
  local found = redis.call('hmget', latch, 'round', 'state', 'until', 'past', 'gone')
  round, state, ends = found[1] or '0', found[2] or 'unset', tonumber(found[3] or nil)
  past, gone = found[4] or '', found[5] or ''
  if marked and state == 'unset' and not value then -- both are lost
    redis.call('del', kind)
  end
  local how = state == 'set' and ends and overdue(value)
  if how then
    finish(how)
  end
  if left > 0 then
    if state ~= 'set' then
      begin(expiry())
    end
  elseif state == 'set' then
    finish('open')
  elseif value and state ~= 'open' then -- Redisson allows a count of zero
    begin()
    finish('open')
  end
  return left
end

-- fate returns the outcome of a round: closed, open or gone. A round that is neither remembered nor
-- older than the remembered ones is gone: a failover lost it, or all data was lost since.
local function fate(which)
  if which == round and state == 'set' then
    return 'closed'
  end
  local older = words(past) == rounds and tonumber(which) < tonumber(string.match(past, '%d+'))
  return not listed(gone, which) and (listed(past, which) or older) and 'open' or 'gone'
end

-- following returns the first remembered round after the given one, if any. If a failover lost the
-- given round, all remembered rounds came before it, and only a closed round can follow.
local function following(which)
  local last = tonumber(which)
  for each in string.gmatch(past, '%d+') do
    if tonumber(each) > last and last <= tonumber(round) then
      return each
    end
  end
  return state == 'set' and tonumber(round) ~= last and round or nil
end
