-- Fragment: nextToken(counter, timed) issues the next fencing token, and returns it. If timed is true, it
-- is not below the server's clock in ms.
--@include shared/clock
local function nextToken(counter, timed)
  local token = redis.call('incr', counter)
  if token >= 9007199254740992 then
    return redis.call('get', counter) -- the numbers of a script are not exact there
  end
  if timed and token < clock() then
    token = now
    redis.call('set', counter, string.format('%.0f', token))
  end
  return string.format('%.0f', token)
end
