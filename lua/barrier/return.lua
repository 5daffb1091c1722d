-- Arrive in the second generation of a Do: the function of the party has returned.
--
--@keys key waiting past
--@args of party publish channel
--
--   of  generation
--
-- Reply   list of strings, as in barrier/arrive.lua; the index is empty
--
-- The last arrival completes the generation. This script breaks a generation that does not know
-- the party, as barrier/look.lua does.
--
-- Cost: at most 19 commands; O(log n). Works on a server that is out of memory. Idempotent: each
-- party arrives once, and a copy that is executed after the generation changes nothing.
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
elseif not redis.call('zscore', waiting, returned(party)) then
  redis.call('zrem', waiting, '') -- lets the rest run on a server that is out of memory
  redis.call('zadd', waiting, 'inf', returned(party))
  arrived = arrived + 1
  redis.call('hset', key, 'arrived', integer(arrived))
  if arrived == parties then
    finish('done')
  end
end
return report(of, '')
