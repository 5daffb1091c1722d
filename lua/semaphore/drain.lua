-- Acquire all permits that a semaphore has, or pay its debt.
--
--@keys key note kind
--@args number
--
-- Reply   integer: how many there were, negative for a debt
--         error LATCHKEY_UNSET: see semaphore/state.lua
--
-- Cost: 5 commands. Idempotent: the operation is noted. semaphore/undo.lua gives back what it took.
local publish, channel
--@include semaphore/state
--@include shared/op_once

if not free then
  return unset()
end
if free ~= 0 then
  redis.call('decrby', key, free)
end
remember(free)
return free
