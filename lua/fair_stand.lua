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

-- leadWithin is lead as the last of the queue tell it, or nil if none of them is ours.
local function leadWithin(depth, shift)
  local tail = redis.call('lrange', queue, -depth, -1)
  local texts = redis.call('hmget', notes, unpack(tail))
  local strangers = 0
  for i = #tail, 1, -1 do
    local alive = texts[i] and expiry(tail[i], texts[i]) or 0
    local score = alive > 0 and redis.call('zscore', deadlines, tail[i])
    if score then
      return math.max(score - alive, 0) + strangers * shift
    elseif not texts[i] then
      strangers = strangers + 1
    end
  end
end

-- lead returns how much waiters of Redisson will take off a deadline at the end of
-- the queue when they acquire: as much as is to come off that of the last of ours, and
-- a shift for each of theirs behind it. If none of ours is near, it is as if all were
-- theirs: too much only means that Redisson finds out later that the owner has died.
local function lead(size, shift)
  return leadWithin(4, shift) or size > 4 and leadWithin(reach, shift) or size * shift
end

-- sweep looks at some of the notes, and removes those of whom Redisson has removed:
-- with each that comes, so that they stay fewer than those who wait.
local function sweep()
  local some = redis.call('hrandfield', notes, 4, 'withvalues')
  for i = 1, #some, 2 do
    if expiry(some[i], some[i + 1]) <= now and not redis.call('zscore', deadlines, some[i]) then
      redis.call('hdel', notes, some[i])
    end
  end
end

-- enqueue gives the owner a place: at the end if it has no ticket.
local function enqueue(ticket, alive, shift)
  trim()
  local size = redis.call('llen', queue)
  local deadline = alive
  if size == 0 then
    redis.call('del', deadlines, notes) -- of a queue that has been deleted
  else
    deadline = alive + lead(size, shift)
    sweep()
  end
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
  local alive, was = now + stale, text and expiry(owner, text) or 0
  ticket = tonumber(ticket) or since(text)
  if not queued then
    ticket = enqueue(ticket, alive, shift)
  elseif not score or was <= now or renewed(was, stale) < was then
    ticket = ticket or micros
    local raise = was > 0 and alive - was or 0 -- what Redisson will take off stays on
    redis.call('hset', notes, owner, string.format('%.0f:%.0f', ticket, alive))
    redis.call('zadd', deadlines, math.max(alive, (score or 0) + raise), owner)
  end
  redis.call('pexpire', notes, 60000 + 10 * stale)
  return ticket
end
