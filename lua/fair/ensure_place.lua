-- Fragment: ensurePlace(ticket, shift) gives the owner its place in the queue of fair/queue.lua, or
-- finds that it has one, if join in fair/acquire.lua could not give it one. It returns the ticket: since
-- when the owner waits, in µs.
--
--   ticket  the result of an earlier call, or ''. An owner that has lost its place (to a
--           Redisson process, to an eviction, to a restart) gets it back by its ticket.
--   shift   ms that a Redisson process subtracts from all deadlines when it acquires the lock
--@needs queue deadlines notes stale owner want ahead
--@include fair/queue
--@include fair/open

-- lastTicket returns the last entry with a ticket in a piece of the queue, except the owner: its
-- index and its ticket.
local function lastTicket(first, last)
  local width = 4
  while last >= first do
    local from = math.max(first, last - width + 1)
    local some = redis.call('lrange', queue, from, last)
    local texts = redis.call('hmget', notes, unpack(some))
    for i = #some, 1, -1 do
      local ticket = since(texts[i])
      if ticket and ticket > 0 and some[i] ~= owner then
        return from + i - 1, ticket
      end
    end
    last, width = from - 1, math.min(4 * width, reach)
  end
end

-- following returns the index of the first entry with a larger ticket, or size: tickets
-- grow along the queue. Waiters of Redisson have no ticket, and do not count.
local function following(ticket, size)
  local low, high = 0, size
  while low < high do
    local middle = math.floor((low + high) / 2)
    local index, other = lastTicket(low, middle)
    if index and other > ticket then
      high = index
    else
      low = middle + 1
    end
  end
  return high
end

-- place inserts the owner by its ticket. Only an owner that lost its place comes here. It takes
-- long only if many waiters of Redisson follow each other, or for an insertion in the middle
-- of a long queue.
local function place(ticket, size)
  local index = following(ticket, size)
  if index == size then
    redis.call('rpush', queue, owner)
  elseif index == 0 then
    redis.call('lpush', queue, owner)
  else
    redis.call('linsert', queue, 'before', redis.call('lindex', queue, index), owner)
  end
end

local moved -- whether a waiter was moved ahead of the owner

-- reorder puts the owner, whose note was lost, in order with the waiters that have their notes: a
-- waiter that came back in between could not see the ticket of the owner. If a waiter ahead has a
-- larger ticket, the owner moves ahead of the first of these. Otherwise the waiters behind the owner
-- with smaller tickets move ahead of it: they joined at the end because they found no larger ticket.
local function reorder(ticket, size)
  local index = following(ticket, size)
  if index < (redis.call('lpos', queue, owner) or 0) then
    local other = redis.call('lindex', queue, index)
    redis.call('lrem', queue, 0, owner)
    redis.call('linsert', queue, 'before', other, owner)
    return
  end
  local tail = redis.call('lrange', queue, -reach, -1)
  local texts = redis.call('hmget', notes, unpack(tail))
  local earlier = {}
  for i = #tail, 1, -1 do
    if tail[i] == owner then
      break
    end
    local other = since(texts[i])
    if other and other > 0 and other < ticket then
      table.insert(earlier, 1, tail[i])
    end
  end
  for _, waiter in ipairs(earlier) do
    redis.call('lrem', queue, -1, waiter)
    redis.call('linsert', queue, 'before', owner, waiter)
    moved = true
  end
end

-- leadWithin computes lead from the last waiters of the queue; nil if none of them is of this library.
local function leadWithin(depth, shift)
  local tail = redis.call('lrange', queue, -depth, -1)
  local texts = redis.call('hmget', notes, unpack(tail))
  listen(tail, texts) -- so that they are known early
  local strangers = 0
  for i = #tail, 1, -1 do
    local alive = since(texts[i]) and expiry(tail[i], texts[i]) or 0
    local score = alive > 0 and redis.call('zscore', deadlines, tail[i])
    if score then
      return math.max(score - alive, 0) + strangers * shift
    elseif not since(texts[i]) and string.sub(tail[i], 15, 15) ~= '8' then
      strangers = strangers + 1
    end
  end
end

-- lead returns how much waiters of Redisson will subtract from a deadline at the end of the queue as
-- they acquire the lock: what they will subtract from the deadline of the last waiter of this
-- library, plus a shift for each waiter of Redisson behind that, and at most a shift for each waiter
-- of the queue. That maximum is the result if no waiter of this library is near the end: too much
-- only means that Redisson detects later that the owner has died.
local function lead(size, shift)
  local all = size * shift
  return math.min(all, leadWithin(4, shift) or size > 4 and leadWithin(reach, shift) or all)
end

-- enqueue gives the owner a place, at the end if it has no ticket.
local function enqueue(ticket, alive, shift)
  trim()
  local size = redis.call('llen', queue)
  if size == 0 then
    return tonumber(open(ticket, alive))
  end
  local deadline = alive + lead(size, shift)
  local last = since(redis.call('hget', notes, redis.call('lindex', queue, -1)))
  local fresh = not ticket
  -- A new ticket is later than the last one, even if the clock of the server was set back.
  ticket = ticket or math.max(micros, (last or -1) + 1)
  mark(ticket, alive, deadline)
  if fresh or last and ticket > last then
    redis.call('rpush', queue, owner)
  else
    place(ticket, size)
  end
  return ticket
end

local function ensurePlace(ticket, shift)
  clock()
  local alive = now + stale
  local text = redis.call('hget', notes, owner)
  local score = redis.call('zscore', deadlines, owner)
  local queued, size = score, redis.call('llen', queue)
  if size ~= redis.call('zcard', deadlines) then
    -- One of the two keys is damaged: only the queue itself is reliable.
    queued = redis.call('lpos', queue, owner)
  end
  local was = since(text) and expiry(owner, text) or 0
  ticket = tonumber(ticket) or since(text)
  if not queued then
    ticket = enqueue(ticket, alive, shift)
  elseif not score or was <= now or renewed(was) < was or want ~= string.match(text, '^%d+:(.-)%d+$') then
    local known = ticket
    ticket = known or micros
    -- The deadline keeps what Redisson will subtract.
    local deadline = was > 0 and score and score + alive - was or alive + lead(size, shift)
    mark(ticket, alive, math.max(alive, deadline))
    -- A ticket that is made here is later than the place of the owner, which must keep its place.
    if known and not since(text) then
      reorder(known, size)
    end
  else
    ahead = tonumber(score) > was
  end
  keep()
  return string.format('%.0f', ticket)
end
