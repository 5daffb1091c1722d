-- Fragment: stand(stale, ticket, shift) gives the owner its place in the queue of
-- fair_queue.lua, or finds that it has it. Besides that fragment it needs the local
-- owner. Returns the ticket: since when the owner waits, in µs.
--
--   stale   ms for which the owner then counts as alive
--   ticket  what an earlier call returned, or ''. Whoever has lost its place (to a
--           Redisson process, to an eviction, to a restart) gets it back by it.
--   shift   ms that a Redisson process takes off all deadlines when it acquires

-- place inserts the owner by its ticket. Those of Redisson have none and count as
-- older. This is the way back after a loss, and only the insertion itself, if it is
-- in the middle, takes longer in a longer queue.
local function place(ticket, size)
  local low, high = 0, size
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = since(redis.call('hget', notes, redis.call('lindex', queue, middle)))
    if other and other > ticket then
      high = middle
    else
      low = middle + 1
    end
  end
  if low == size then
    redis.call('rpush', queue, owner)
  elseif low == 0 then
    redis.call('lpush', queue, owner)
  else
    redis.call('linsert', queue, 'before', redis.call('lindex', queue, low), owner)
  end
end

-- enqueue gives the owner a place: at the end if it has no ticket.
local function enqueue(ticket, alive, shift)
  local size = redis.call('llen', queue)
  if size == 0 then
    redis.call('del', deadlines) -- of a queue that has been deleted
  end
  -- Waiters of Redisson ahead push our deadline back when they acquire.
  local strangers = size - redis.call('hlen', notes)
  local deadline = alive + (strangers > 0 and strangers * shift or 0)
  local last = size > 0 and since(redis.call('hget', notes, redis.call('lindex', queue, -1)))
  local fresh = not ticket
  if fresh then
    -- Later than the last one, also if the clock of the server was set back.
    ticket = last and last >= micros and last + 1 or micros
  end
  redis.call('hset', notes, owner, string.format('%.0f:%.0f', ticket, alive))
  redis.call('zadd', deadlines, deadline, owner)
  if fresh or size == 0 or last and ticket > last then
    redis.call('rpush', queue, owner)
  else
    place(ticket, size)
  end
  return ticket
end

local function stand(stale, ticket, shift)
  clock()
  local text = redis.call('hget', notes, owner)
  local score = redis.call('zscore', deadlines, owner)
  local queued = score
  if redis.call('llen', queue) ~= redis.call('zcard', deadlines) then
    -- One of the two keys is damaged: only the queue itself can tell.
    queued = redis.call('lpos', queue, owner)
  end
  local alive = now + stale
  ticket = tonumber(ticket) or since(text)
  if not queued then
    ticket = enqueue(ticket, alive, shift)
  elseif not score or not text or expiry(owner, text) <= now then
    ticket = ticket or micros
    redis.call('hset', notes, owner, string.format('%.0f:%.0f', ticket, alive))
    redis.call('zadd', deadlines, math.max(alive, tonumber(score or 0)), owner)
  end
  redis.call('pexpire', notes, 60000 + 10 * stale)
  return ticket
end
