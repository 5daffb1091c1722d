-- Fragment: a barrier.
--
--   key      hash
--              generation  the last generation that began: µs when it began; it only grows
--              parties     number of parties that complete a generation
--              arrived     number of parties that have arrived; 0 when the generation is over
--              stage       enter or run: the generation is the first or the second of a Do
--   waiting  sorted set: party -> ms at which its lease ends; the parties of the generation. In the
--            stage run also "returned <party>" -> inf for each party that has arrived
--   past     sorted set: "<generation> <how it ended> <who ended it>" -> generation; the last ones
--   party    a name that is used once
--
-- A party that leaves a generation breaks it. So the number of arrivals equals the number of
-- waiting parties, and it is the index of the next arrival.
--
-- When all parties of a Do have arrived, their second generation begins at once, with all of them
-- and nobody else. Each runs its function and then arrives. In the entry in past of the first, the
-- number of the second stands for who ended it.
--
-- A generation ends in one of these ways:
--
--   done     all parties have arrived
--   crashed  the lease of the party ended
--   left, timeout, closed  the party gave up: its context was canceled, its time was over, its client
--            was closed
--   reset    by Reset
--   lost     the server lost it, or forgot its outcome, or does not know one of its parties
--
-- A script replies about an arrival with a list of strings: how the generation ended, or waiting;
-- the party that ended it; the generation; an index; the ms until the first lease ends, or -1.
--@needs key waiting past publish channel
--@include shared/tell
--@include shared/clock
local remembered = 600000 -- ms, after the last sign of life
local mostPast = 500

local generation, parties, arrived, stage

local function integer(n)
  return string.format('%.0f', n)
end

-- leaseEnd is the score of a lease that begins now.
local function leaseEnd(lease)
  return integer(clock() + lease)
end

-- outlive keeps a key for a while after the end of a lease that begins now.
local function outlive(what, lease)
  local ms = remembered + tonumber(lease)
  if redis.call('pttl', what) < ms then
    redis.call('pexpire', what, ms)
  end
end

-- returned is the member that shows that a party has arrived in the stage run.
local function returned(party)
  return 'returned ' .. party
end

-- open reports whether the generation is in progress.
local function open()
  return arrived > 0 or stage == 'run'
end

-- record remembers how the generation ended.
local function record(how, who)
  local number = integer(generation)
  redis.call('zadd', past, number, number .. ' ' .. how .. ' ' .. (who or ''))
  if redis.call('zcard', past) > mostPast then
    redis.call('zpopmin', past)
  end
  redis.call('pexpire', past, remembered)
end

-- finish ends the generation, and wakes the waiting parties.
local function finish(how, who)
  redis.call('del', waiting) -- lets the rest run on a full server
  record(how, who)
  redis.call('hset', key, 'arrived', '0')
  if stage ~= '' then
    redis.call('hdel', key, 'stage')
  end
  redis.call('pexpire', key, remembered)
  arrived, stage = 0, ''
  tell(publish, channel, how == 'done' and '1' or '0')
end

-- read reads the state. A key that is not a barrier is an error.
local function read()
  local found = redis.call('hmget', key, 'generation', 'parties', 'arrived', 'stage')
  if not found[1] and redis.call('exists', key) == 1 then
    return redis.error_reply('WRONGTYPE the key holds no barrier')
  end
  generation, parties, arrived = tonumber(found[1] or 0), tonumber(found[2] or 0), tonumber(found[3] or 0)
  stage = found[4] or ''
end

-- sync is read. It also ends a generation if a party has crashed or parties were lost.
local function sync()
  local wrong = read()
  if wrong or not open() then
    return wrong
  end
  local over = redis.call('zrangebyscore', waiting, '-inf', clock(), 'limit', 0, 1)[1]
  if redis.call('zcard', waiting) ~= arrived + (stage == 'run' and parties or 0) then
    finish('lost')
  elseif over then
    finish('crashed', over)
  end
end

-- untilFirstEnd returns the ms until the first lease ends.
local function untilFirstEnd()
  local first = redis.call('zrange', waiting, 0, 0, 'withscores')
  return math.max(0, tonumber(first[2]) - clock())
end

-- fate returns the outcome of a generation, the party that broke it or the second generation of a
-- Do, and the ms until the first lease ends in the generation, or in the second one; -1 if that is
-- over too. A generation that is not remembered is lost.
local function fate(number)
  if open() and number == integer(generation) then
    return 'waiting', '', untilFirstEnd()
  end
  local ended = redis.call('zrangebyscore', past, number, number)[1]
  if not ended then
    --@include shared/only_master
    return 'lost', '', -1
  end
  local how, who = string.match(ended, '^%d+ (%a+) (.*)$')
  return how, who, stage == 'run' and who == integer(generation) and untilFirstEnd() or -1
end

-- report returns the reply about an arrival.
local function report(number, index)
  local how, who, ms = fate(number)
  return {how, who, number, index, integer(ms)}
end
