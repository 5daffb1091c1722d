-- Report whether a number is a semaphore or a latch.
--
-- KEYS[1] state of a latch (see latch/state.lua)
-- KEYS[2] total (see semaphore/state.lua), KEYS[3] ids (see permit/state.lua)
-- KEYS[4] kind (see shared/number_kind.lua)
--
-- Reply   string: 'latch' or 'semaphore' by the keys that this library keeps alongside the
--         number, '' if there are none
--
-- This is a separate script because not every user that may inspect a lock may read these keys.
--
-- Cost: at most 3 commands. Writes nothing.
local kind = redis.call('get', KEYS[4])
if kind then
  return kind == 'latch' and 'latch' or 'semaphore'
elseif redis.call('hget', KEYS[1], 'state') == 'set' then
  return 'latch'
end
return redis.call('exists', KEYS[2], KEYS[3]) > 0 and 'semaphore' or ''
