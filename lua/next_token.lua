-- Fragment: nextToken(counter, timed) issues the next fencing token, and returns it. If timed is true, it
-- is not below the server's clock in ms.
local function nextToken(counter, timed)
  local token = redis.call('incr', counter)
  if token >= 9007199254740992 then
    return redis.call('get', counter) -- the numbers of a script are not exact there
  end
  if timed then
    local now = redis.call('time')
    local least = now[1] * 1000 + math.floor(now[2] / 1000)
    if token < least then
      token = least
      redis.call('set', counter, string.format('%.0f', token))
    end
  end
  return string.format('%.0f', token)
end
