-- Ask for the lease of a permit, or set it.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- ARGV[1] id, as bytes
-- ARGV[2] '1' to set it
-- ARGV[3] ms from now, '' without an end
--
-- Reply   nil: the permit is not held, or its lease is over
--         integer: ms that are left, -1 without an end
--
-- Cost: at most 3 commands; O(log p). Works on a server that is out of memory.
-- Idempotent, but for the time that passes.
local held = KEYS[2]
local key, reserve, publish, channel
--@include tell
--@include permit_state
local score = redis.call('zscore', held, ARGV[1])
if not score or lapsed(score) then
  return false
end
if ARGV[2] == '1' then
  redis.call('zrem', held, '') -- lets the rest pass on a server at its limit
  score = ends(ARGV[3])
  redis.call('zadd', held, 'xx', score, ARGV[1])
end
if tonumber(score) >= never then
  return -1
end
return math.ceil(tonumber(score)) - clock()
