-- Fragment: a barrier. It needs the locals key, waiting, past, publish and channel.
--
--   key      hash
--              generation  the last generation that began, a growing number: µs when it did
--              parties     how many parties make it complete
--              arrived     how many have arrived; 0 when it is over
--   waiting  sorted set: party -> ms at which its lease is over; those that have arrived
--   past     sorted set: number, how it ended, who ended it -> number; the last generations
--
-- No party leaves a generation without breaking it. So those that have arrived are as many
-- as those that wait, and the next one's index is their number. A generation ends as one
-- of
--
--   done     all parties have arrived
--   crashed  the lease of the party ran out
--   left, timeout, closed  the party has given up: its context was cancelled, its time
--            was over, its client was closed
--   reset    by Reset
--   lost     the server has lost it, or its outcome was forgotten
local remembered = 600000 -- ms, after the last sign of life
local mostPast = 500
--@include clock

local generation, parties, arrived

local function integer(n)
  return string.format('%.0f', n)
end

-- leaseEnd is the score of a lease that begins now.
local function leaseEnd(lease)
  return integer(clock() + tonumber(lease))
end

-- outlive has a key stay for a while after a lease that begins now.
local function outlive(what, lease)
  local ms = remembered + tonumber(lease)
  if redis.call('pttl', what) < ms then
    redis.call('pexpire', what, ms)
  end
end

-- finish ends the generation, and wakes who waits.
local function finish(how, who)
  redis.call('del', waiting) -- lets the rest pass on a server at its limit
  local number = integer(generation)
  redis.call('zadd', past, number, number .. ' ' .. how .. ' ' .. (who or ''))
  if redis.call('zcard', past) > mostPast then
    redis.call('zpopmin', past)
  end
  redis.call('pexpire', past, remembered)
  redis.call('hset', key, 'arrived', '0')
  redis.call('pexpire', key, remembered)
  arrived = 0
  tell(publish, channel, how == 'done' and '1' or '0')
end

-- read reads the state. A key that is no barrier is an error.
local function read()
  local found = redis.call('hmget', key, 'generation', 'parties', 'arrived')
  if not found[1] and redis.call('exists', key) == 1 then
    return redis.error_reply('WRONGTYPE the key holds no barrier')
  end
  generation, parties, arrived = tonumber(found[1] or 0), tonumber(found[2] or 0), tonumber(found[3] or 0)
end

-- sync is read, and ends a generation of which a party has crashed, or parties were lost.
local function sync()
  local wrong = read()
  if wrong or arrived == 0 then
    return wrong
  end
  if redis.call('zcard', waiting) ~= arrived then
    finish('lost')
    return
  end
  local over = redis.call('zrangebyscore', waiting, '-inf', clock(), 'limit', 0, 1)
  if over[1] then
    finish('crashed', over[1])
  end
end

-- fate tells what became of a generation, and who broke it: waiting, or how it ended; with
-- the ms until the first lease ends. One that is not remembered never was here, as far as
-- the server knows, or was forgotten.
local function fate(number)
  if arrived > 0 and number == integer(generation) then
    local first = redis.call('zrange', waiting, 0, 0, 'withscores')
    return 'waiting', '', math.max(0, tonumber(first[2]) - clock())
  end
  local ended = redis.call('zrangebyscore', past, number, number)[1]
  if not ended then
    return 'lost', '', -1
  end
  local how, who = string.match(ended, '^%d+ (%a+) (.*)$')
  return how, who, -1
end

-- report is the reply about an arrival.
local function report(number, index)
  local how, who, ms = fate(number)
  return {how, who, number, index, integer(ms)}
end
