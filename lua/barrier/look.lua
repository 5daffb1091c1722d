-- Report the outcome of a generation of a barrier to one of its parties.
--
-- KEYS[1] barrier, KEYS[2] waiting, KEYS[3] past (see barrier/state.lua)
-- ARGV[1] generation
-- ARGV[2] party, or "returned <party>" if it has arrived in the stage run
-- ARGV[3] PUBLISH or SPUBLISH, ARGV[4] channel
--
-- Reply   list of strings, as in barrier/arrive.lua; the index is empty
--         error WRONGTYPE: the key is another kind of object
--
-- This script breaks a generation if one of its parties has crashed, or if the generation does
-- not know the party ARGV[2]: a failover lost that arrival, and all would wait for it.
--
-- Cost: at most 7 commands, 15 if it breaks the generation; O(log n). Works on a server that
-- is out of memory. Idempotent.
local key, waiting, past, publish, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[3], ARGV[4]
--@include barrier/state
local wrong = sync()
if wrong then
  return wrong
end
if open() and ARGV[1] == integer(generation) and not redis.call('zscore', waiting, ARGV[2]) then
  finish('lost')
end
return report(ARGV[1], '')
