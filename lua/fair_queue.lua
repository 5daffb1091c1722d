-- Fragment: the queue of a fair lock. It needs the locals key (the lock), queue,
-- deadlines, notes, publish and prefix (of the waiters' channels), and stale: the ms
-- for which a waiter counts as alive after a sign of life, or nil if this script does
-- not know.
--
--   queue      list of the owners that wait, in order; Redisson's
--   deadlines  sorted set owner -> ms at which Redisson gives it up; Redisson's. An
--              owner is in both or in neither.
--   notes      hash owner -> "<since µs>:<alive until ms>", for owners of this
--              library. The first number is the place, the last the sign of life:
--              whoever is behind a waiter does not wait longer than that for it,
--              whatever its deadline. "<since>:0" has left, and stays in the queue
--              until it comes to an end of it. One that can be granted the lock has
--              "<since>:<lease>:<tokens>:<alive until>": the ms of the lease that the
--              grant gives it, and 1 if it wants a fencing token, 1t if that must not
--              fall below the server's clock. What Redisson has removed from the other
--              two may stand here for a while. What is noted about waiters of Redisson
--              stands in fair_listeners.lua.
--
-- No function walks the queue: each looks at a bounded piece at its ends.
local pruneBatch, reach = 64, 256
local now, micros
local pruned = 0
local silent = {} -- clients that do not hear of a grant: their waiters are dead

local function clock()
  if not now then
    local time = redis.call('time')
    micros = time[1] * 1000000 + time[2]
    now = math.floor(micros / 1000)
  end
end

-- since tells since when a waiter of this library waits, nil of any other.
local function since(text)
  return text and tonumber(string.match(text, '^(%d+):'))
end

-- wants returns what a waiter is to be granted, as it stands in its note: the lease and
-- the tokens. nil of one that asks for itself.
local function wants(text)
  return string.match(text or '', '^%d+:(%d+):(%d+t?):')
end

local function clientOf(waiter)
  return string.match(waiter, '^(.*):') or waiter
end

-- expiry tells until when a waiter counts as alive.
local function expiry(waiter, text)
  if next(silent) and silent[clientOf(waiter)] and wants(text) then
    return 0
  end
  return tonumber(text and string.match(text, ':(%d+)$') or redis.call('zscore', deadlines, waiter) or 0)
end

local function forget(waiter)
  redis.call('zrem', deadlines, waiter)
  redis.call('hdel', notes, waiter)
end

-- keep lets the notes expire some time after the last of them was written.
local function keep()
  redis.call('pexpire', notes, 60000 + 10 * (stale or 0))
end

-- clear removes what stands beside a queue that is gone: notes of waiters whom Redisson
-- has removed, and deadlines that keep them from ever joining again.
local function clear()
  if redis.call('exists', queue) == 0 then
    redis.call('del', deadlines, notes)
  end
end

-- within tells from which end of the queue a waiter is found, 1 or -1; nil if it is not
-- near either.
local function within(waiter)
  return redis.call('lpos', queue, waiter, 'maxlen', reach) and 1
    or redis.call('lpos', queue, waiter, 'rank', -1, 'maxlen', reach) and -1
end
--@include fair_listeners

-- pruneOnce removes the dead from the head of the queue, a batch at most.
local function pruneOnce()
  local heads = redis.call('lrange', queue, 0, pruneBatch - 1)
  local texts = redis.call('hmget', notes, unpack(heads))
  listen(heads, texts)
  local dead = {}
  for i, waiter in ipairs(heads) do
    if expiry(waiter, texts[i]) > now then
      break
    end
    dead[i] = waiter
  end
  if #dead > 0 then
    redis.call('lpop', queue, #dead)
    redis.call('zrem', deadlines, unpack(dead))
    redis.call('hdel', notes, unpack(dead))
    pruned = pruned + #dead
  end
end

-- over removes the whole queue if nobody in it is alive by the deadlines, as
-- Redisson would, one by one.
local function over()
  local latest = redis.call('zrange', deadlines, -1, -1, 'withscores')[2]
  if not latest or tonumber(latest) > now or redis.call('llen', queue) ~= redis.call('zcard', deadlines) then
    return false
  end
  redis.call('unlink', queue, deadlines, notes)
  return true
end

-- trim removes the dead of this library from the end of the queue, a batch at most: a
-- Redisson waiter that comes counts its deadline from the last one's.
local function trim()
  local last = redis.call('lindex', queue, -1)
  local text = last and redis.call('hget', notes, last)
  if not since(text) or expiry(last, text) > now then
    return
  end
  local tail = redis.call('lrange', queue, -pruneBatch, -1)
  local texts = redis.call('hmget', notes, unpack(tail))
  local dead = {}
  for i = #tail, 1, -1 do
    if not since(texts[i]) or expiry(tail[i], texts[i]) > now then
      break
    end
    table.insert(dead, tail[i])
  end
  redis.call('rpop', queue, #dead)
  redis.call('zrem', deadlines, unpack(dead))
  redis.call('hdel', notes, unpack(dead))
  if #dead == pruneBatch then
    over()
  end
end

-- renewed returns until when a waiter is to count as alive that has just given a sign
-- of life. That time only rises, unless it is so far ahead that the clock of the server
-- must have been set back: a waiter that dies would live until that moment comes again.
local function renewed(was)
  local alive = now + stale
  return was > now + 10 * stale and alive or math.max(was, alive)
end

-- front returns the first of the queue, after removing those before it that are
-- dead, for how many ms it counts as alive, and its note: 0 ms if there are too many dead
-- for one call.
local function front()
  while true do
    local head = redis.call('lindex', queue, 0)
    if not head then
      return
    end
    clock()
    local text = {redis.call('hget', notes, head)}
    listen({head}, text)
    local left = expiry(head, text[1]) - now
    if left > 0 then
      return head, left, text[1]
    end
    if pruned >= pruneBatch then
      if over() then
        return
      end
      return head, 0
    end
    pruneOnce()
  end
end
