-- Fragment: the counter of a semaphore. It needs the locals key, publish and channel.
--
--   key    string: available permits, may be negative; Redisson's
--   total  string: all permits, of a counter that was set here; moves with what sets and
--          adds permits, not with what takes and gives them
local most = 2147483647 -- Redisson's integers

-- look returns how many permits there are, nil if none were ever set. What is no number
-- that the server can add to is an error, which is returned and not thrown: some scripts
-- have more to do.
local function look()
  local value = redis.pcall('get', key)
  if not value then
    return
  elseif type(value) == 'table' then
    return nil, value
  end
  local n = tonumber(value)
  if not n or math.abs(n) > 2 ^ 53 or string.format('%.0f', n) ~= value then
    return nil, redis.error_reply('WRONGTYPE the key holds no number of permits')
  end
  return n
end

local function unset()
  return redis.error_reply('LATCHKEY_UNSET nobody has set the permits')
end

-- announce tells who waits that there are permits; a number that is not positive would
-- be an error in the listeners of Redisson.
local function announce(n)
  if n > 0 then
    return tell(publish, channel, string.format('%.0f', n))
  end
  return 0
end
