-- Fragment: keep makes the queue of fairsem_queue.lua expire some time after the last sign of life.
-- It needs the local stale: the ms for which a waiter counts as alive after one.
local function keep()
  local life = string.format('%.0f', 60000 + 10 * stale)
  redis.call('pexpire', queue, life)
  redis.call('pexpire', alive, life)
  redis.call('pexpire', grants, life)
end
