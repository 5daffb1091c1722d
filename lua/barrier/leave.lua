-- Leave a barrier: a party that gives up breaks its generation, unless that is over.
--
--@keys key waiting past note=nil
--@args party from number why publish channel
--
--   note, number  of the arrival, only if its outcome is unknown; else number is ''
--   from          generation, '' if the outcome of the arrival is unknown
--   why           left, timeout or closed
--
-- Reply   list of strings (see barrier/state.lua). If from names the generation, in place of the index
--         how many parties had arrived when this one broke it, else empty. If the arrival was not
--         executed, it never will be, and the reply says that this party ended the generation.
--
-- If from is the first generation of a Do, and is complete, the party leaves the second one.
--
-- Cost: at most 18 commands; O(log n). Works on a full server. Idempotent: a party leaves only
-- once.
--@include shared/op
--@include barrier/state

local of, index = from, ''
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
  if from ~= '' then
    index = integer(arrived)
  end
  finish(why, party)
end
return report(of, index)
