-- Fragment: timeLeft(rest, whole) returns for how many ms a lock that is released early stays taken: rest,
-- but at most its remaining time, or exactly its remaining time if whole is true.
--@needs key
local function timeLeft(rest, whole)
  local ttl = redis.call('pttl', key)
  if ttl < 0 or not whole and ttl > rest then
    ttl = rest
  end
  return math.max(ttl, 1) -- in its last ms
end
