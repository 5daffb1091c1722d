-- Fragment: keep makes the queue of permit/queue.lua expire some time after the last sign of life. stale is
-- the ms for which a waiter counts as alive after one.
--@needs queue alive grants stale
local function keep()
  local life = string.format('%.0f', 60000 + 10 * stale)
  redis.call('pexpire', queue, life)
  redis.call('pexpire', alive, life)
  redis.call('pexpire', grants, life)
end
