-- Fragment: timeLeft(rest, whole) is for how many ms a lock stays taken that is released rest ms early: for as
-- long as it would have been at most, and exactly so long if whole is true. It needs the local key.
local function timeLeft(rest, whole)
  local ttl = redis.call('pttl', key)
  if ttl < 0 or not whole and ttl > rest then
    ttl = rest
  end
  return math.max(ttl, 1) -- in its last ms
end
