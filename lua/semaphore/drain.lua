-- Acquire all permits that a semaphore has, or pay its debt.
--
-- KEYS[1] permits, KEYS[2] note (see shared/op.lua), KEYS[3] kind (see shared/number_kind.lua)
-- ARGV[1] number of the operation
--
-- Reply   integer: how many there were, negative for a debt
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_UNSET: see semaphore/state.lua; error LATCHKEY_PAST: see shared/op.lua
--
-- Cost: 5 commands. Idempotent: the operation is noted. semaphore/undo.lua gives back what it took.
local key, note, kind, number = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local publish, channel
--@include semaphore/once

if not free then
  return unset()
end
if free ~= 0 then
  redis.call('decrby', key, free)
end
remember(free)
return free
