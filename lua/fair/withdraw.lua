-- Fragment: removes the owner from the queue of a fair lock, if it is there.
--@needs queue deadlines notes owner
--@include fair/queue

-- withdraw removes the owner from the queue, or marks it for removal.
local function withdraw()
  local text = redis.call('hget', notes, owner)
  local score = redis.call('zscore', deadlines, owner)
  if not text and not score then
    return
  end
  local side = within(owner)
  if side then
    redis.call('lrem', queue, side, owner)
    return forget(owner)
  end
  if not score or redis.call('llen', queue) <= reach then
    return forget(owner) -- it had no place
  end
  -- A write that needs no memory goes first: after it a server that is out of memory runs
  -- the others.
  redis.call('hdel', notes, '')
  redis.call('hset', notes, owner, string.format('%.0f:0', since(text) or 0))
  keep()
  -- This deadline lets the owner die now. It is not in the past, and still contains what
  -- Redisson will subtract, because Redisson computes the deadline of the next waiter from it.
  redis.call('zadd', deadlines, score - math.max(expiry(owner, text) - now, 0), owner)
end

local function quit()
  clock()
  withdraw()
  trim()
  clear()
end

pcall(quit) -- in a damaged queue it has no place anyway
