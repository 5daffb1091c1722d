-- Report how many permits of a semaphore are available and how many are acquired.
--
--@keys key held kind
--
--   held  ids (see permit/state.lua)
--
-- Reply   array: available, including permits whose lease is over, negative if more are acquired
--         than there are; acquired; ms until the semaphore expires, -1 without an expiry
--         error WRONGTYPE: the key is another kind of object; error LATCHKEY_UNSET: see semaphore/state.lua
--
-- Cost: 7 commands; O(log p) for p ids, however many have expired. Idempotent: changes
-- nothing.
local publish, channel
--@include permit/state
local free, wrong = look()
if not free then
  return wrong or unset()
end
--@include shared/only_master
local over = expired()
return {free + over, redis.call('zcard', held) - over, redis.call('pttl', key)}
