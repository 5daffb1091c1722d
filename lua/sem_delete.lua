-- Delete a semaphore.
--
-- KEYS[1] permits
-- KEYS[2] note (see op.lua)
-- KEYS[3] channel
-- KEYS[4...] what stands beside it
-- ARGV[1] number of the operation
-- ARGV[2] PUBLISH or SPUBLISH
--
-- Reply   integer: 1 it is deleted, 0 there was none
--         error LATCHKEY_PAST: the operation is over
--
-- Who waits is told, and finds out.
--
-- Cost: at most 7 commands. Works on a server that is out of memory. Idempotent: the
-- operation is noted, so that a copy that is late does not delete the next one.
local note, number = KEYS[2], ARGV[1]
--@include tell
--@include op
local done, past = recall()
if done or past then
  return past or tonumber(done)
end
local kind = redis.call('type', KEYS[1])['ok']
if kind ~= 'string' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE the key holds something else')
end
redis.call('del', KEYS[1], unpack(KEYS, 4))
if kind == 'none' then
  return nothing()
end
remember(1)
tell(ARGV[2], KEYS[3], '0')
return 1
