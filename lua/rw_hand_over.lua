-- Fragment: toWriter(next, full) gives a read/write lock that nobody holds to the first writer in
-- the queue, behind which it puts the entry next first: see to_first.lua, whose reply it returns. It needs
-- rw_state.lua, what grant.lua needs but for the counter, channel, and waits, on which all clients of
-- this library listen that wait for the lock. It never fails: a lock that cannot be handed over is
-- free.
local counter -- who writes has no token
--@include to_first

local function give(to, lease)
  begin('write', to .. ':write', '1', lease)
  lastEnd = clock() + lease -- so that the next begin removes it, if nobody hears of this one
  redis.call('zrem', writers, to)
end

local function toWriter(next, full)
  if queue then
    local worked, granted = pcall(toFirst, 'w', key, give, next, full, waits)
    if worked and granted then
      return granted
    end
  end
  if lastEnd then
    redis.call('del', key, leases)
  end
end
