-- Tell how many permits a semaphore has.
--
-- KEYS[1] permits, KEYS[2] total (see sem_state.lua)
--
-- Reply   array: available, negative if it is a debt; ms until the semaphore ends, -1 without
--         an end; how many there are in all, nil if that is not known
--         error WRONGTYPE: the key is another kind of object
--         error LATCHKEY_UNSET: nobody has set them
--
-- A script, because it is answered by the master of a cluster, and for all numbers to be of
-- one moment.
--
-- Cost: 3 commands. Idempotent: changes nothing.
local key, total = KEYS[1], KEYS[2]
local publish, channel
--@include tell
--@include sem_state
local free, wrong = look()
if not free then
  return wrong or unset()
end
key = total -- what is no number there does not hide how many are available
return {free, redis.call('pttl', KEYS[1]), look() or false}
