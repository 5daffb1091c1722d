-- Report the lease of a permit.
--
--@keys key held kind
--@args id
--
-- Reply   nil: the permit is not held, or its lease is over
--         integer: remaining ms, -1 without an end
--
-- Cost: at most 5 commands; O(log p). Changes nothing.
local publish, channel
--@include permit/state
local _, wrong = look()
if wrong then
  return wrong
end
local score = redis.call('zscore', held, id)
--@include shared/only_master
if not score or lapsed(score) then
  return false
end
if tonumber(score) >= never then
  return -1
end
return math.ceil(tonumber(score)) - clock()
