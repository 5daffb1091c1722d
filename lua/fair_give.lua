-- Fragment: give(waiter, client, lease, token) makes the first of the queue of a fair lock the
-- owner of the lock, which is free, for so many ms, and tells its client:
--
--   "grant f <owner> <fencing token, or 0> <lock>"
--
-- It returns how many have heard, -1 if the server refuses the message: the owner finds out
-- when it asks. If nobody listens, and all who do are counted, the client is gone: its waiter
-- is out of the queue, and the lock is free. Nobody is told before the lock is written.
-- Besides tell.lua it needs the locals key, queue, deadlines, notes and publish, and
--
--   clients, suffix  what the channels of clients begin and end with
--   counts           whether the server counts all who listen there
--@include listened
local function give(waiter, client, lease, token)
  -- The first three need no memory, and let the others pass on a server that has none.
  redis.call('zrem', deadlines, waiter)
  redis.call('hdel', notes, waiter)
  redis.call('lpop', queue)
  redis.call('hset', key, waiter, '1')
  redis.call('pexpire', key, lease)
  local told = 0
  if not counts or listened(clients .. client .. suffix) then
    told = tell(publish, clients .. client .. suffix, 'grant f ' .. waiter .. ' ' .. token .. ' ' .. key)
  end
  if told == 0 and counts then
    redis.call('del', key)
  end
  return told
end
