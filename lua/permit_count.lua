-- Count the permits of a semaphore.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
--
-- Reply   array: available, held by somebody
--         error WRONGTYPE: the key is another kind of object
--         error LATCHKEY_UNSET: nobody has set them
--
-- Cost: 3 commands; O(log p), however many have expired. Changes nothing.
local key, held = KEYS[1], KEYS[2]
local publish, channel
--@include tell
--@include sem_state
--@include permit_state
local free, wrong = look()
if not free then
  return wrong or unset()
end
local over = expired()
return {free + over, redis.call('zcard', held) - over}
