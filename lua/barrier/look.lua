-- Report the outcome of a generation of a barrier to one of its parties, or arrive in the second
-- generation of a Do, because the function of the party has returned.
--
--@keys key waiting past
--@args of party publish channel arrives=''
--
--   of       generation
--   party    or "returned <party>" if it has arrived in the stage run
--   arrives  '1' to arrive
--
-- Reply   list of strings (see barrier/state.lua); the index is empty
--
-- The last arrival completes the generation. This script breaks a generation if one of its parties
-- has crashed, or if the generation does not know the party: a failover lost that arrival.
--
-- Cost: at most 7 commands, 19 if it ends the generation; O(log n). Works on a full server.
-- Idempotent: each party arrives once, and a late copy changes nothing.
--@include barrier/state
local wrong = sync()
if wrong then
  return wrong
end
if not open() or of ~= integer(generation) then
  return report(of, '')
end
if not redis.call('zscore', waiting, party) then
  finish('lost')
elseif arrives == '1' and not redis.call('zscore', waiting, returned(party)) then
  redis.call('zrem', waiting, '') -- lets the rest run on a full server
  redis.call('zadd', waiting, 'inf', returned(party))
  arrived = arrived + 1
  redis.call('hset', key, 'arrived', integer(arrived))
  if arrived == parties then
    finish('done')
  end
end
return report(of, '')
