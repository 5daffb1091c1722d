-- Free a read/write lock whoever holds it in one way.
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw_state.lua)
-- KEYS[5] channel
-- ARGV[1] 'read' or 'write', or '' for both
-- ARGV[2] PUBLISH or SPUBLISH
--
-- Reply   1: it was held in that way, and is free; 0: it was not; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Lease keys are left to expire, as Redisson leaves them.
--
-- Cost: at most 4 commands. Not idempotent: a copy that arrives late frees a later
-- hold, so it is sent once.
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
--@include tell
--@include rw_state
local mode, _, _, wrong = look('')
if wrong then
  return wrong
end
if not mode or ARGV[1] ~= '' and mode ~= ARGV[1] then
  return 0
end
free(ARGV[2], KEYS[5], mode == 'read' and '0' or '1')
return 1
