-- Fragment: reserve(counter, tokens, timed) reserves a number of fencing tokens and returns the
-- first. If timed is true, that is not below the server's clock in ms.
local function reserve(counter, tokens, timed)
  local last = redis.call('incrby', counter, tokens)
  if last >= 9007199254740992 then
    return redis.call('get', counter) -- the numbers of a script are not exact there
  end
  local first = last - tokens + 1
  if timed then
    local now = redis.call('time')
    local least = now[1] * 1000 + math.floor(now[2] / 1000)
    if first < least then
      first = least
      redis.call('set', counter, string.format('%.0f', first + tokens - 1))
    end
  end
  return string.format('%.0f', first)
end
