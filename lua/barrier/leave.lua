-- Leave a barrier: a party that gives up breaks its generation, unless that is over.
--
-- KEYS[1] barrier, KEYS[2] waiting, KEYS[3] past (see barrier/state.lua)
-- KEYS[4] note of the arrival (see shared/op.lua), only if its outcome is unknown
-- ARGV[1] party
-- ARGV[2] generation, '' if the outcome of the arrival is unknown
-- ARGV[3] number of the arrival, or ''
-- ARGV[4] why: left, timeout or closed
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
--
-- Reply   list of strings, as in barrier/arrive.lua. If ARGV[2] names the generation, in place of the
--         index how many parties had arrived when this one broke it, else empty. If the arrival was not executed, it never will be, and the reply says
--         that this party ended the generation.
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- If ARGV[2] is the first generation of a Do, and is complete, the party leaves the second one.
--
-- Cost: at most 18 commands; O(log n). Works on a server that is out of memory. Idempotent:
-- a party leaves only once.
local key, waiting, past, note = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local party, number, why = ARGV[1], ARGV[3], ARGV[4]
local publish, channel = ARGV[5], ARGV[6]
--@include shared/op
--@include barrier/state

local of, index = ARGV[2], ''
if of == '' then
  local before, over = recall()
  if not before then
    if not over then
      room()
      remember(void)
    end
    return {why, party, '0', '0', '-1'}
  end
  of, index = string.match(before, '^(%d+) (%d+)$')
end
local wrong = sync()
if wrong then
  return wrong
end
if of ~= integer(generation) and stage == 'run' and redis.call('zscore', waiting, party) then
  of = integer(generation)
end
if open() and of == integer(generation) then -- so the party is in it: only the party can leave
  if ARGV[2] ~= '' then
    index = integer(arrived)
  end
  finish(why, party)
end
return report(of, index)
