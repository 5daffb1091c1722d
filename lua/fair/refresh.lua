-- Keep waiters of fair locks alive, many at once, and report their state.
--
--@keys (key queue deadlines notes tokens)...
--@args stale publish suffix counts firstLock...
--
--   key, queue, deadlines, notes, tokens  of a lock, as in fair/acquire.lua
--   stale      ms for which the waiters then count as alive
--   firstLock  and on, for each lock: prefix of its waiters' channels, prefix of the channels of
--              clients, the number of its waiters in this call, and these waiters
--
-- Reply   array, for each waiter: 1 it has its place, 2 it is the first and the lock
--         is free, 0 it has lost its place and has to retry to get it back
--
-- A sign of life only moves to a later time, unless the clock of the server was set back.
-- The script gives no places. It removes at most 64 dead waiters at each end. If the lock
-- is free, it goes to the first of the queue (see fair/grant.lua), unless that is one of
-- the waiters in this call.
--
-- Cost: about 12 commands for each lock, 4 more if others wait for it, and O(log n)
-- for each waiter. Works on a server that is out of memory. Idempotent.
stale, counts = tonumber(stale), counts == '1'
local prefix, clients
--@include fair/grant
clock()

-- damaged says that queue and deadlines differ, so that only a search shows which waiters have
-- a place. In the middle of a long queue the script does not search: a waiter that lost its
-- place there finds out when it retries.
local damaged

local function placed(waiter, size)
  return not damaged or size > 2 * reach or within(waiter)
end

-- mend removes a deadline that has passed and whose owner is not in the queue.
local function mend()
  local first = redis.call('zrange', deadlines, 0, 0, 'withscores')
  if first[2] and tonumber(first[2]) <= now and not redis.call('lpos', queue, first[1]) then
    redis.call('zrem', deadlines, first[1])
  end
end

-- refresh adds to the reply for the waiters of one lock, and extends their signs of life.
local function refresh(waiters, reply, size)
  local texts = redis.call('hmget', notes, unpack(waiters))
  local signs, scores = {}, {}
  local first = redis.call('lindex', queue, 0)
  for i, waiter in ipairs(waiters) do
    local text, score = texts[i], redis.call('zscore', deadlines, waiter)
    local was = since(text) and expiry(waiter, text) or 0
    if was > 0 and score and placed(waiter, size) then
      reply[#reply + 1] = 1
      local raise = renewed(was) - was
      table.insert(signs, waiter)
      table.insert(signs, string.match(text, '^(.*:)') .. string.format('%.0f', was + raise))
      -- Redisson subtracts time from the deadline when a waiter ahead acquires the lock. That stays
      -- subtracted, down to the sign of life. Nobody is ahead of the first.
      table.insert(scores, waiter == first and was + raise or math.max(score + raise, was + raise))
      table.insert(scores, waiter)
    else
      reply[#reply + 1] = 0
    end
  end
  if #signs > 0 then
    redis.call('hdel', notes, '') -- lets the rest run on a server that is out of memory
    redis.call('hset', notes, unpack(signs))
    redis.call('zadd', deadlines, unpack(scores))
    keep()
  end
end

-- sweep looks at some of the notes, and removes those of dead waiters that Redisson has removed.
local function sweep()
  -- Before Redis 6.2.5 the reply for a missing key is null.
  local some = redis.call('hrandfield', notes, 16, 'withvalues') or {}
  for i = 1, #some, 2 do
    if expiry(some[i], some[i + 1]) <= now and not redis.call('zscore', deadlines, some[i]) then
      redis.call('hdel', notes, some[i])
    end
  end
end

-- hear checks the waiters of Redisson among the first of the queue.
local function hear()
  local heads = redis.call('lrange', queue, 0, pruneBatch - 1)
  if #heads > 0 then
    listen(heads, redis.call('hmget', notes, unpack(heads)))
  end
end

local reply, arg = {}, firstLock
for i = 1, #KEYS - 4, 5 do
  key, queue, deadlines, notes, tokens = unpack(KEYS, i, i + 4)
  prefix, clients = ARGV[arg], ARGV[arg + 1]
  local waiters = {}
  for n = 1, tonumber(ARGV[arg + 2]) do
    waiters[n] = ARGV[arg + 2 + n]
  end
  arg = arg + 3 + #waiters
  local size, known = redis.call('llen', queue), redis.call('zcard', deadlines)
  damaged = size ~= known
  if damaged then
    mend()
  end
  local first = #reply
  refresh(waiters, reply, size)
  trim()
  sweep()
  if size > #waiters then
    hear()
  end
  pruned = 0
  local head, left = front()
  if head and left > 0 and redis.call('exists', key) == 0 then
    local ours = false
    for n, waiter in ipairs(waiters) do
      if waiter == head and reply[first + n] == 1 then
        reply[first + n], ours = 2, true
      end
    end
    if not ours then
      pass()
    end
  end
end
return reply
