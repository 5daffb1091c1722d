-- Fragment: join(alive) gives an owner that has no place one at the end of a queue, if one
-- look shows that it is in order. Besides fair_notes.lua it needs the locals owner and
-- want: what it is to be granted, as in its note, or ''.
local ahead = false -- whether waiters of Redisson stand before the owner, as far as is known

-- ticketAfter returns a new ticket. It is later than the last one, also if the clock of the
-- server was set back.
local function ticketAfter(last)
  return last and last >= micros and last + 1 or micros
end

-- mark notes that the owner waits and is alive, and until when Redisson is to keep it:
-- longer than it is alive by what those of Redisson before it will take off.
local function mark(ticket, alive, deadline)
  redis.call('hset', notes, owner, string.format('%.0f:%s%.0f', ticket, want, alive))
  redis.call('zadd', deadlines, deadline, owner)
  ahead = deadline > alive
end

-- open begins a queue with the owner, without what has been left of an earlier one.
local function open(ticket, alive)
  ticket = ticket or since(redis.call('hget', notes, owner)) or micros
  redis.call('del', deadlines, notes)
  mark(ticket, alive, alive)
  redis.call('rpush', queue, owner)
  keep()
  return ticket
end

-- join gives the owner a place at the end of the queue, if it has none and the last one is
-- of this library and alive: nothing else has to be known then. Returns the ticket, or nil.
local function join(alive)
  local last = redis.call('lindex', queue, -1)
  if not last then
    return open(nil, alive)
  end
  local texts = redis.call('hmget', notes, owner, last)
  local scores = redis.call('zmscore', deadlines, owner, last)
  local life = since(texts[2]) and scores[2] and expiry(last, texts[2]) or 0
  if texts[1] or scores[1] or life <= now then
    return
  end
  local ticket = ticketAfter(since(texts[2]))
  mark(ticket, alive, alive + math.max(scores[2] - life, 0))
  redis.call('rpush', queue, owner)
  return ticket
end
