-- Fragment: enqueue(entry) puts an entry at the end of the queue of a lock, unless it is
-- there, and keeps the queue. It returns since when the entry stands there, its score. It
-- needs the local queue; see grant.lua for what an entry is.
--
-- The queue lives for a minute after the last call, much longer than the pause after which
-- a waiter asks again.
local queueLife = '60000'

local function enqueue(entry)
  local now = redis.call('time')
  local since = now[1] .. string.sub('00000' .. now[2], -6)
  if redis.call('zadd', queue, 'nx', since, entry) == 0 then
    since = redis.call('zscore', queue, entry)
  end
  redis.call('pexpire', queue, queueLife)
  return since
end
