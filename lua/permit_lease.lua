-- Ask for the lease of a permit.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- ARGV[1] id, as bytes
--
-- Reply   nil: the permit is not held, or its lease is over
--         integer: ms that are left, -1 without an end
--
-- Cost: 2 commands; O(log p). Changes nothing.
local held = KEYS[2]
local key, reserve, publish, channel
--@include tell
--@include permit_state
local score = redis.call('zscore', held, ARGV[1])
if not score or lapsed(score) then
  return false
end
if tonumber(score) >= never then
  return -1
end
return math.ceil(tonumber(score)) - clock()
