-- Report how many permits a semaphore has.
--
--@keys key total kind
--
--   total  see semaphore/state.lua
--
-- Reply   array: available, negative for a debt; ms until the semaphore expires, -1 without
--         an expiry; the total, nil if that is not known
--         error WRONGTYPE: the key is another kind of object; error LATCHKEY_UNSET: see semaphore/state.lua
--
-- This is a script so that the master of a cluster answers it, with numbers from the same
-- moment.
--
-- Cost: 5 commands. Idempotent: changes nothing.
local publish, channel
--@include semaphore/state
local free, wrong = look()
if not free then
  return wrong or unset()
end
--@include shared/only_master
-- A total that is not a number does not hide the available permits.
return {free, redis.call('pttl', key), tonumber(redis.pcall('get', total) or nil) or false}
