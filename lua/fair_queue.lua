-- Fragment: the ends of the queue of a fair lock. Besides fair_notes.lua it needs the locals
-- key (the lock), publish, and prefix (of the waiters' channels).
--
-- No function walks the queue: each looks at a bounded piece at its ends.
local pruneBatch, reach = 64, 256
local pruned = 0

local function forget(waiter)
  redis.call('zrem', deadlines, waiter)
  redis.call('hdel', notes, waiter)
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

-- listen brings up to date what the texts, from the notes, say of those of these waiters
-- who are Redisson's.
local function listen(waiters, texts)
  for i = 1, #waiters do
    if not since(texts[i]) then
      --@include fair_listeners
      return update(waiters, texts)
    end
  end
end

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
