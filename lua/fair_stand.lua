-- Fragment: stand(ticket, shift) gives the owner its place in the queue of
-- fair_queue.lua, or finds that it has it, if fair_join.lua does not. Returns the ticket:
-- since when the owner waits, in µs.
--
--   ticket  what an earlier call returned, or ''. Whoever has lost its place (to a
--           Redisson process, to an eviction, to a restart) gets it back by it.
--   shift   ms that a Redisson process takes off all deadlines when it acquires

-- lastTicket returns the last entry with a ticket in a piece of the queue, other than the
-- owner: its index and the ticket.
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
-- grow along the queue. Waiters of Redisson have none, and do not count.
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

-- place inserts the owner by its ticket. This is the way back after a loss, and takes
-- longer only where many of Redisson stand in a row, or for an insertion in the middle
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

local moved -- whether somebody was brought before the owner

-- reorder puts the owner, whose note was lost, in order with those who have theirs: one
-- that came back meanwhile did not know its ticket. The owner goes before the first with
-- a larger ticket. Or those go before the owner that have smaller ones and stand behind
-- it: they came to the end of the queue for want of larger ones.
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

-- leadWithin is lead as the last of the queue tell it, or nil if none of them is ours.
local function leadWithin(depth, shift)
  local tail = redis.call('lrange', queue, -depth, -1)
  local texts = redis.call('hmget', notes, unpack(tail))
  listen(tail, texts) -- the sooner they are known, the better
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

-- lead returns how much waiters of Redisson will take off a deadline at the end of
-- the queue when they acquire: as much as is to come off that of the last of ours, and
-- a shift for each of theirs behind it, and never more than if all were theirs. If none
-- of ours is near, it is that: too much only means that Redisson finds out later that
-- the owner has died.
local function lead(size, shift)
  local all = size * shift
  return math.min(all, leadWithin(4, shift) or size > 4 and leadWithin(reach, shift) or all)
end

-- enqueue gives the owner a place: at the end if it has no ticket.
local function enqueue(ticket, alive, shift)
  trim()
  local size = redis.call('llen', queue)
  if size == 0 then
    return tonumber(open(ticket, alive))
  end
  local deadline = alive + lead(size, shift)
  local last = since(redis.call('hget', notes, redis.call('lindex', queue, -1)))
  local fresh = not ticket
  -- A new ticket is later than the last one, also if the clock of the server was set back.
  ticket = ticket or math.max(micros, (last or -1) + 1)
  mark(ticket, alive, deadline)
  if fresh or last and ticket > last then
    redis.call('rpush', queue, owner)
  else
    place(ticket, size)
  end
  return ticket
end

local function stand(ticket, shift)
  clock()
  local alive = now + stale
  local text = redis.call('hget', notes, owner)
  local score = redis.call('zscore', deadlines, owner)
  local queued, size = score, redis.call('llen', queue)
  if size ~= redis.call('zcard', deadlines) then
    -- One of the two keys is damaged: only the queue itself can tell.
    queued = redis.call('lpos', queue, owner)
  end
  local was = since(text) and expiry(owner, text) or 0
  ticket = tonumber(ticket) or since(text)
  if not queued then
    ticket = enqueue(ticket, alive, shift)
  elseif not score or was <= now or renewed(was) < was or want ~= string.match(text, '^%d+:(.-)%d+$') then
    local known = ticket
    ticket = known or micros
    -- What Redisson will take off stays on.
    local deadline = was > 0 and score and score + alive - was or alive + lead(size, shift)
    mark(ticket, alive, math.max(alive, deadline))
    -- A ticket that is made up here is later than the place, and must not cost it.
    if known and not since(text) then
      reorder(known, size)
    end
  else
    ahead = tonumber(score) > was
  end
  keep()
  return string.format('%.0f', ticket)
end
