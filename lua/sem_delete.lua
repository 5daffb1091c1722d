-- Delete a semaphore.
--
-- KEYS[1] permits
-- KEYS[2] note (see op.lua)
-- KEYS[3] kind (see number_kind.lua)
-- KEYS[4...] the other keys of the semaphore
-- ARGV[1] number of the operation
-- ARGV[2] PUBLISH or SPUBLISH, ARGV[3] channel
-- ARGV[4] its kind, as in KEYS[3]
--
-- Reply   integer: 1 it is deleted, 0 there was no semaphore
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see op.lua
--
-- Waiters get a message and look at the semaphore again.
--
-- Cost: at most 8 commands. Works on a server that is out of memory. Idempotent: the
-- operation is noted, so that a late copy does not delete the next semaphore.
local key, note, kind, number = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local publish, channel = ARGV[2], ARGV[3]
--@include sem_state
mine = ARGV[4]
--@include sem_once

redis.call('del', key, unpack(KEYS, 3))
if not free then
  return nothing()
end
remember(1)
tell(publish, channel, '0')
return 1
