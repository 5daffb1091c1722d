-- Fragment: stops the script on a server that accepts no writes, before it replies that something is not there, or
-- with figures that no lease makes untrue. key may hold any type, or not exist.
--
-- A replica executes a script until its first write, and may be empty or out of date: after a failover
-- a client may be connected to the former master for a moment. So this is a write that changes
-- nothing. A replica refuses it with READONLY, and the client retries. It works on a server that is
-- out of memory.
--@needs key
do
  local refusal = redis.pcall('hdel', key, '')
  if type(refusal) == 'table' and not string.find(refusal['err'], 'WRONGTYPE', 1, true) then
    redis.call('hdel', key, '') -- fails again, and ends the script
  end
end
