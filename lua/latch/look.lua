-- Report the state of a latch, or the outcome of one of its rounds.
--
--@keys key latch done kind
--@args asked after
--
--   asked  the round in question, '' for the state of the latch
--   after  '1' if the question is about the round after that one
--
-- Reply   list of strings: what, round, count, ms until the round expires or -1
--
--           closed   the count is above zero
--           open     it was counted down to zero
--           gone     the round was deleted or expired, or is no longer remembered
--           expired  the latch expired, and nobody has set it since
--           unset    nobody has set it; the round is the last known round, or 0
--
-- Cost: 4 commands, 6 for a round that expires, at most 24 if Redisson or time has changed it.
-- Works on a full server. Idempotent.
--@include latch/state

local _, wrong = look()
if wrong then
  return wrong
end
--@include shared/only_master
local which, what = asked, nil
if after == '1' then
  which = following(which)
  if not which then
    local lost = tonumber(asked) > tonumber(round)
    return {'unset', lost and round or asked, '0', '-1'}
  end
end
if which ~= '' then
  what = fate(which)
else
  which = round
  what = state == 'set' and 'closed' or state == 'deleted' and 'unset' or state
end
local ms = -1
if what == 'closed' and ends then
  ms = math.max(0, ends - clock())
end
return {what, which, integer(math.max(0, left)), integer(ms)}
