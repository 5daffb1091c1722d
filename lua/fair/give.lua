-- Fragment: give(waiter, client, lease, token) makes the first waiter in the queue of a fair lock
-- the owner of the lock, which is free, for a lease in ms. It sends to the client of the waiter:
--
--   "grant f <owner> <fencing token, or 0> <lock>"
--
-- It returns how many subscribers received that, -1 if the server refuses the message: then the
-- owner learns of the grant when it retries. If the client is gone (see shared/listened.lua), its waiter
-- leaves the queue, and the lock stays free.
--@needs key queue deadlines notes publish clients suffix counts
--@include shared/tell
--@include shared/listened
local function give(waiter, client, lease, token)
  -- The first three need no memory. After them a server that is out of memory runs the others.
  redis.call('zrem', deadlines, waiter)
  redis.call('hdel', notes, waiter)
  redis.call('lpop', queue)
  redis.call('hset', key, waiter, '1')
  redis.call('pexpire', key, lease)
  local receivers = 0
  if not counts or listened(clients .. client .. suffix) then
    receivers = tell(publish, clients .. client .. suffix, 'grant f ' .. waiter .. ' ' .. token .. ' ' .. key)
  end
  if receivers == 0 and counts then
    redis.call('del', key)
  end
  return receivers
end
