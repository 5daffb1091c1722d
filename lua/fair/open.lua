-- Fragment: mark and open, which fair/acquire.lua and fair/ensure_place.lua use to record waiters.
--@needs queue deadlines notes stale owner want ahead
--@include shared/clock

-- mark notes that the owner waits, until when it counts as alive, and until when Redisson is to
-- keep it: longer by what waiters of Redisson ahead of it will subtract. It returns the ticket
-- as text.
local function mark(ticket, alive, deadline)
  ticket = string.format('%.0f', ticket)
  redis.call('hset', notes, owner, string.format('%s:%s%.0f', ticket, want, alive))
  redis.call('zadd', deadlines, deadline, owner)
  ahead = deadline > alive
  return ticket
end

-- open begins a queue with the owner, and deletes what remains of an earlier one.
local function open(ticket, alive)
  local since = string.match(redis.call('hget', notes, owner) or '', '^(%d+):')
  redis.call('del', deadlines, notes)
  ticket = mark(ticket or tonumber(since) or micros, alive, alive)
  redis.call('rpush', queue, owner)
  redis.call('pexpire', notes, 60000 + 10 * stale) -- as keep in fair/notes.lua
  return ticket
end
