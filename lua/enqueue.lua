-- Fragment: enqueue(entry, since) adds an entry to the end of the queue of a lock, or with the score since
-- to its old place, unless it is in the queue, and extends the life of the queue. It returns the score of
-- the entry: the time at which it came. It needs the local queue. See to_first.lua for the format of an
-- entry.
--
-- The queue lives for a minute after the last call, much longer than the pause after which
-- a waiter retries.
local queueLife = '60000'

local function enqueue(entry, since)
  if not since then
    local now = redis.call('time')
    since = now[1] .. string.sub('00000' .. now[2], -6)
  end
  if redis.call('zadd', queue, 'nx', since, entry) == 0 then
    since = redis.call('zscore', queue, entry)
  end
  redis.call('pexpire', queue, queueLife)
  return since
end
