-- Fragment: the ends of the queue of a fair lock. prefix is that of the waiters' channels.
--
-- No function walks the queue: each looks at a bounded piece at its ends.
--@needs queue deadlines notes stale
--@include fair/notes
--@include shared/clock
local pruneBatch, reach = 64, 256
local pruned = 0

local function forget(waiter)
  redis.call('zrem', deadlines, waiter)
  redis.call('hdel', notes, waiter)
end

-- within returns the end of the queue near which it finds a waiter, 1 or -1; nil if it is near
-- neither.
local function within(waiter)
  return redis.call('lpos', queue, waiter, 'maxlen', reach) and 1
    or redis.call('lpos', queue, waiter, 'rank', -1, 'maxlen', reach) and -1
end

-- listen updates the texts, which are the notes of these waiters, for those waiters that are
-- Redisson's.
local function listen(waiters, texts)
  for i = 1, #waiters do
    if not since(texts[i]) then
      --@include fair/listeners
      return update(waiters, texts)
    end
  end
end

-- removeDead removes dead waiters from the head of the queue with pop 'lpop', and dead waiters of this library
-- from its end with 'rpop', a batch at most. It returns how many.
local function removeDead(pop)
  local atEnd = pop == 'rpop'
  local some = redis.call('lrange', queue, atEnd and -pruneBatch or 0, atEnd and -1 or pruneBatch - 1)
  local texts, dead = redis.call('hmget', notes, unpack(some)), {}
  if not atEnd then
    listen(some, texts)
  end
  for n = 1, #some do
    local i = atEnd and #some + 1 - n or n
    if expiry(some[i], texts[i]) > now or atEnd and not since(texts[i]) then
      break
    end
    dead[n] = some[i]
  end
  if #dead > 0 then
    redis.call(pop, queue, #dead)
    redis.call('zrem', deadlines, unpack(dead))
    redis.call('hdel', notes, unpack(dead))
  end
  return #dead
end

-- over removes the whole queue if by the deadlines nobody in it is alive. Redisson would remove
-- the waiters one by one.
local function over()
  local latest = redis.call('zrange', deadlines, -1, -1, 'withscores')[2]
  if not latest or tonumber(latest) > now or redis.call('llen', queue) ~= redis.call('zcard', deadlines) then
    return false
  end
  redis.call('unlink', queue, deadlines, notes)
  return true
end

-- trim removes dead waiters of this library from the end of the queue: a Redisson waiter that joins computes
-- its deadline from the last one.
local function trim()
  local last = redis.call('lindex', queue, -1)
  local text = last and redis.call('hget', notes, last)
  if since(text) and expiry(last, text) <= now and removeDead('rpop') == pruneBatch then
    over()
  end
end

-- renewed returns until when a waiter counts as alive that has just given a sign of life. That
-- time never falls, unless it is so far ahead that the clock of the server must have been set
-- back: if the waiter died, it would count as alive until then.
local function renewed(was)
  local alive = now + stale
  return was > now + 10 * stale and alive or math.max(was, alive)
end

-- front removes the dead waiters at the head of the queue. It returns the first waiter, for how
-- many ms it counts as alive, and its note; 0 ms if there are too many dead waiters for one call.
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
    pruned = pruned + removeDead('lpop')
  end
end
