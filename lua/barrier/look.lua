-- Report the outcome of a generation of a barrier to one of its parties.
--
--@keys key waiting past
--@args of party publish channel
--
--   of     generation
--   party  a party, or "returned <party>" if it has arrived in the stage run
--
-- Reply   list of strings, as in barrier/arrive.lua; the index is empty
--
-- This script breaks a generation if one of its parties has crashed, or if the generation does
-- not know the party: a failover lost that arrival, and all would wait for it.
--
-- Cost: at most 7 commands, 15 if it breaks the generation; O(log n). Works on a server that
-- is out of memory. Idempotent.
--@include barrier/state
local wrong = sync()
if wrong then
  return wrong
end
if open() and of == integer(generation) and not redis.call('zscore', waiting, party) then
  finish('lost')
end
return report(of, '')
