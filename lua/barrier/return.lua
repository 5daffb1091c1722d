-- Arrive in the second generation of a Do: the function of the party has returned.
--
-- KEYS[1] barrier, KEYS[2] waiting, KEYS[3] past (see barrier/state.lua)
-- ARGV[1] generation
-- ARGV[2] party
-- ARGV[3] PUBLISH or SPUBLISH, ARGV[4] channel
--
-- Reply   list of strings, as in barrier/arrive.lua; the index is empty
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- The last arrival completes the generation. This script breaks a generation that does not know
-- the party, as barrier/look.lua does.
--
-- Cost: at most 19 commands; O(log n). Works on a server that is out of memory. Idempotent: each
-- party arrives once, and a copy that is executed after the generation changes nothing.
local key, waiting, past, publish, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[3], ARGV[4]
local of, party = ARGV[1], ARGV[2]
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
