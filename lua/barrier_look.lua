-- Tell what became of a generation of a barrier.
--
-- KEYS[1] barrier, KEYS[2] waiting, KEYS[3] past (see barrier_state.lua)
-- ARGV[1] generation
-- ARGV[2] PUBLISH or SPUBLISH, ARGV[3] channel
--
-- Reply   list of strings, as in barrier_arrive.lua; the index is empty
--         error WRONGTYPE: the key is another kind of object
--
-- A generation of which a party has crashed is broken by whoever looks first.
--
-- Cost: at most 6 commands, 13 if it breaks the generation; O(log n). Works on a server that
-- is out of memory. Idempotent.
local key, waiting, past, publish, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3]
--@include tell
--@include barrier_state
local wrong = sync()
if wrong then
  return wrong
end
return report(ARGV[1], '')
