-- Fragment: join() gives a new owner a place at the end of the queue, if a look at the last
-- waiter shows that the queue is in order. Most owners need no more than this. want is what the
-- owner is to be granted, as in its note, or ''. Numbers go to the server as text, because scripts
-- are slow to format them.
--@needs queue deadlines notes stale owner want
local ahead = false -- whether waiters of Redisson are known to be ahead of the owner
--@include shared/clock

-- join returns the ticket as text. It changes nothing and returns nil if the owner may have a place
-- or had one, or if the last waiter of the queue is not of this library, or is dead.
local function join()
  local last = redis.call('lindex', queue, '-1')
  if not last then
    clock()
    --@include fair/open
    return open(nil, now + stale)
  end
  local text = redis.call('hget', notes, last) or ''
  local since, life = string.match(text, '^(%d+):.*:(%d+)$')
  if not since then
    since, life = string.match(text, '^(%d+):(%d+)$')
  end
  local deadline = since and redis.call('zscore', deadlines, last)
  if not deadline then
    return
  end
  clock()
  if tonumber(life) <= now then
    return
  end
  -- A ticket is later than the last one, even if the clock of the server was set back.
  local ticket = tonumber(since) < micros and moment or string.format('%.0f', since + 1)
  local alive = string.format('%.0f', now + stale)
  ahead = deadline ~= life and deadline - life > 0
  deadline = ahead and alive + (deadline - life) or alive
  if redis.call('zadd', deadlines, 'nx', deadline, owner) == 0 then
    return
  elseif redis.call('hsetnx', notes, owner, ticket .. ':' .. want .. alive) == 0 then
    redis.call('zrem', deadlines, owner)
    return
  end
  redis.call('rpush', queue, owner)
  return ticket
end
