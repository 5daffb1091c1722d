-- Fragment: enqueue(entry) puts an entry at the end of the queue of a lock, unless it is
-- there, and keeps the queue. It needs the local queue; see grant.lua for what an entry is.
--
-- The queue lives for a minute after the last call, much longer than the pause after which
-- a waiter asks again.
local queueLife = '60000'

local function enqueue(entry)
  local now = redis.call('time')
  redis.call('zadd', queue, 'nx', now[1] .. string.sub('00000' .. now[2], -6), entry)
  redis.call('pexpire', queue, queueLife)
end
