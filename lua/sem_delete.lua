-- Delete a semaphore.
--
-- KEYS[1] permits
-- KEYS[2] note (see op.lua)
-- KEYS[3...] what stands beside it
-- ARGV[1] number of the operation
-- ARGV[2] PUBLISH or SPUBLISH, ARGV[3] channel
--
-- Reply   integer: 1 it is deleted, 0 there was none
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_PAST: the operation is over
--
-- Who waits is told, and finds out.
--
-- Cost: at most 7 commands. Works on a server that is out of memory. Idempotent: the
-- operation is noted, so that a copy that is late does not delete the next one.
local key, note, number, publish, channel = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
--@include tell
--@include op
--@include sem_state
--@include sem_once

redis.call('del', key, unpack(KEYS, 3))
if not free then
  return nothing()
end
remember(1)
tell(publish, channel, '0')
return 1
