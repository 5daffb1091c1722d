-- Fragment: handOverToWriter(next, full) puts the entry next at the end of the queue, and gives a read/write
-- lock that nobody holds to the first writer in the queue: see queue/hand_over.lua, whose reply it returns.
-- It never fails: a lock that cannot be handed over is free.
--@needs key leases writers queue waits
--@include rw/state
local counter -- a writer has no token
--@include queue/hand_over

local function give(to, lease)
  begin('write', to .. ':write', '1', lease)
  lastEnd = clock() + lease -- so that the next begin removes this lease if nobody receives the grant
  redis.call('zrem', writers, to)
end

local function handOverToWriter(next, full)
  if queue then
    local worked, granted = pcall(handOver, 'w', key, give, next, full, waits)
    if worked and granted then
      return granted
    end
  end
  if lastEnd then
    redis.call('del', key, leases)
  end
end
