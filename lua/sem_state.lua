-- Fragment: the counter of a semaphore. It needs the locals key, reserve, publish and
-- channel.
--
--   key      string: available permits, may be negative; Redisson's
--   reserve  string: who has been waiting for long, a space, and how many permits it
--            waits for; they are kept for it
--   total    string: all permits, of a counter that was set here; moves with what sets
--            and adds permits, not with what takes and gives them
local most = 2147483647 -- Redisson's integers

-- look returns how many permits there are, nil if none were ever set. A string that is
-- no number is an error.
local function look()
  local value = redis.call('get', key)
  if not value then
    return
  end
  local n = tonumber(value)
  if not n then
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

-- reserved returns who the permits are kept for, and how many.
local function reserved()
  local kept = redis.call('get', reserve)
  if kept then
    local who, n = string.match(kept, '^(%S+) (%d+)$')
    return who, tonumber(n)
  end
end
