-- Tell how many permits a semaphore has.
--
-- KEYS[1] permits
--
-- Reply   integer: how many, negative if it is a debt
--         error WRONGTYPE: the key is another kind of object
--         error LATCHKEY_UNSET: nobody has set them
--
-- A script, because it is answered by the master of a cluster.
--
-- Cost: 1 command. Changes nothing.
local key = KEYS[1]
local publish, channel
--@include tell
--@include sem_state
local free, wrong = look()
return free or wrong or unset()
