-- Report whether a number is a semaphore or a latch.
--
--@keys latch total ids kind
--
--   latch  state of a latch (see latch/state.lua)
--   total  see semaphore/state.lua
--   ids    see permit/state.lua
--
-- Reply   string: 'latch' or 'semaphore' by the keys that this library keeps alongside the
--         number, '' if there are none
--
-- This is a separate script because not every user that may inspect a lock may read these keys.
--
-- Cost: at most 3 commands. Writes nothing.
local found = redis.call('get', kind)
if found then
  return found == 'latch' and 'latch' or 'semaphore'
elseif redis.call('hget', latch, 'state') == 'set' then
  return 'latch'
end
return redis.call('exists', total, ids) > 0 and 'semaphore' or ''
