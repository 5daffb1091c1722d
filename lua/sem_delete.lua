-- Delete a semaphore.
--
-- KEYS[1] permits
-- KEYS[2] channel
-- KEYS[3...] what stands beside it
-- ARGV[1] PUBLISH or SPUBLISH
--
-- Reply   integer: 1 it is deleted, 0 there was none
--
-- Who waits is told, and finds out.
--
-- Cost: at most 3 commands. Works on a server that is out of memory. Idempotent, but
-- for the reply.
--@include tell
local kind = redis.call('type', KEYS[1])['ok']
if kind ~= 'string' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE the key holds something else')
end
local gone = redis.call('del', KEYS[1], unpack(KEYS, 3))
if kind == 'none' then
  return 0
end
tell(ARGV[1], KEYS[2], '0')
return gone > 0 and 1 or 0
