-- Fragment: handOverToWriter(next, full) puts the entry next at the end of the queue, and gives a read/write
-- lock that nobody holds to the first writer in the queue: see queue/hand_over.lua, whose reply it returns.
--@needs key leases writers waits
--@include rw/state
local counter -- a writer has no token
--@include queue/hand_over

local function give(to, lease)
  begin('write', to .. ':write', '1', lease)
  lastEnd = clock() + lease -- so that the next begin removes this lease if nobody receives the grant
  redis.call('zrem', writers, to)
end

local function handOverToWriter(next, full)
  local granted = handOver('w', give, next, full, waits)
  if not granted then
    redis.call('del', key, leases) -- of a grant that nobody received
  end
  return granted
end
