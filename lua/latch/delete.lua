-- Delete a latch.
--
--@keys key latch done note kind
--@args number which publish channel
--
--   which  its last round, as seen before
--
-- Reply   integer: 1 it is deleted, 0 there was no latch
--         -1 another round has begun; nothing changed
--
-- All waiters look at the latch again. Redisson's own message would leave its waiters asleep.
--
-- Cost: at most 16 commands, 34 if Redisson or time has changed the latch. Works on a full server.
-- Idempotent: the operation is noted.
--@include latch/state
--@include shared/op_once

if round ~= which then
  --@include shared/only_master
  return -1
end
room()
local closed = state == 'set'
local there = (closed or state == 'open') and 1 or 0
redis.call('del', key, kind)
if closed then
  finish('deleted')
elseif round ~= '0' then
  redis.call('hset', latch, 'state', 'deleted')
end
redis.call('pexpire', latch, remembered)
remember(there)
if closed then
  tell(publish, channel, '0')
end
return there
