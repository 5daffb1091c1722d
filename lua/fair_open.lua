-- Fragment: mark and open, with which fair_join.lua and fair_stand.lua write down who waits.
--@include fair_keep

-- mark notes that the owner waits and is alive, and until when Redisson is to keep it:
-- longer than it is alive by what those of Redisson before it will take off. Returns the
-- ticket as text.
local function mark(ticket, alive, deadline)
  ticket = string.format('%.0f', ticket)
  redis.call('hset', notes, owner, string.format('%s:%s%.0f', ticket, want, alive))
  redis.call('zadd', deadlines, deadline, owner)
  ahead = deadline > alive
  return ticket
end

-- open begins a queue with the owner, without what has been left of an earlier one.
local function open(ticket, alive)
  local since = string.match(redis.call('hget', notes, owner) or '', '^(%d+):')
  redis.call('del', deadlines, notes)
  ticket = mark(ticket or tonumber(since) or micros, alive, alive)
  redis.call('rpush', queue, owner)
  keep()
  return ticket
end
