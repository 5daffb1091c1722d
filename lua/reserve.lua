-- Fragment: reserve(counter, tokens, timed) reserves so many fencing tokens and returns the
-- first, which is not below the server's clock in ms if they are timed.
local function reserve(counter, tokens, timed)
  local last = redis.call('incrby', counter, tokens)
  if last >= 9007199254740992 then
    return redis.call('get', counter) -- the script's own numbers are not exact there
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
