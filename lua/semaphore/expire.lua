-- Set or remove the expiry of a semaphore, or delete it.
--
-- KEYS[1] permits
-- KEYS[2] note (see shared/op.lua)
-- KEYS[3] kind (see shared/number_kind.lua)
-- KEYS[4...] the other keys of the semaphore; those of its queue only to delete it
-- ARGV[1] number of the operation
-- ARGV[2] ms, '' for no expiry, '0' to delete it
-- ARGV[3] its kind, as in KEYS[3]
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel; only to delete it
--
-- Reply   integer: 1 done, 0 there is no semaphore
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see shared/op.lua
--
-- If it is deleted, waiters get a message and look at the semaphore again.
--
-- Cost: a command for each key, and 5; at most 8 to delete it. Works on a server that is out of memory.
-- Idempotent: the operation is noted, so that a late copy does not delete the next semaphore.
local key, note, kind, number, ms = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local publish, channel = ARGV[4], ARGV[5]
--@include semaphore/state
mine = ARGV[3]
--@include semaphore/once

if ms == '0' then
  redis.call('del', key, unpack(KEYS, 3)) -- also what a semaphore that is gone has left
end
if not free then
  return nothing()
end
room()
remember(1)
if ms == '0' then
  tell(publish, channel, '0')
  return 1
end
for _, each in ipairs({key, unpack(KEYS, 3)}) do
  if ms == '' then
    redis.call('persist', each)
  else
    redis.call('pexpire', each, ms)
  end
end
return 1
