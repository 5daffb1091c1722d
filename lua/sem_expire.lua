-- Set or remove the expiry of a semaphore.
--
-- KEYS[1] permits
-- KEYS[2] note (see op.lua)
-- KEYS[3] kind (see number_kind.lua)
-- KEYS[4...] the other keys of the semaphore
-- ARGV[1] number of the operation
-- ARGV[2] ms, or '' for none
-- ARGV[3] its kind, as in KEYS[3]
--
-- Reply   integer: 1 done, 0 there is no semaphore
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see op.lua
--
-- Cost: a command for each key, and 5. Works on a server that is out of memory.
-- Idempotent: the operation is noted.
local key, note, kind, number = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local publish, channel
--@include sem_state
mine = ARGV[3]
--@include sem_once

if not free then
  return nothing()
end
room()
for i, each in ipairs(KEYS) do
  if i == 2 then
    remember(1)
  elseif ARGV[2] == '' then
    redis.call('persist', each)
  else
    redis.call('pexpire', each, ARGV[2])
  end
end
return 1
