-- Report the lease of a permit.
--
-- KEYS[1] permits, KEYS[2] ids (see permit/state.lua), KEYS[3] kind (see shared/number_kind.lua)
-- ARGV[1] id, as bytes
--
-- Reply   nil: the permit is not held, or its lease is over
--         integer: remaining ms, -1 without an end
--         error WRONGTYPE: the key is another kind of object
--
-- Cost: at most 5 commands; O(log p). Changes nothing.
local key, held, kind = KEYS[1], KEYS[2], KEYS[3]
local publish, channel
--@include permit/state
local _, wrong = look()
if wrong then
  return wrong
end
local score = redis.call('zscore', held, ARGV[1])
--@include shared/only_master
if not score or lapsed(score) then
  return false
end
if tonumber(score) >= never then
  return -1
end
return math.ceil(tonumber(score)) - clock()
