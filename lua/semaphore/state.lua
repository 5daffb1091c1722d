-- Fragment: the counter of a semaphore.
--
--   key    string: available permits, may be negative; Redisson's
--   total  string: all permits, for a counter that this library has set; changes when
--          permits are set or added, not when they are acquired or released
--   kind   see shared/number_kind.lua
--
-- Scripts that need permits reply if there are none:
--
--   error LATCHKEY_UNSET: nobody has set the permits; nothing changed
--@needs key publish channel
local most = 2147483647 -- Redisson's integers
local mine = 'semaphore'
--@include shared/tell
--@include shared/number_kind

-- look returns how many permits are available, nil if nobody has set them. The second result is an
-- error if it is another kind of object, or a value that the server cannot add to.
local function look()
  local value = redis.pcall('get', key)
  if type(value) == 'table' then
    return nil, value
  end
  local wrong = otherKind(value)
  if wrong or not value then
    return nil, wrong
  end
  local n = numberIn(value)
  if not n then
    return nil, redis.error_reply('WRONGTYPE the key holds no number of permits')
  end
  return n
end

-- outOfRange returns an error if a change by n would lead to a sum that is not possible: of all
-- permits, if total is true, else of those available. Redisson may have made a number negative,
-- which may rise.
local function outOfRange(sum, n, total)
  if sum > most or sum < (total and 0 or -most) and n < 0 then
    return redis.error_reply(string.format('LATCHKEY_RANGE %.0f', sum))
  end
end

local function unset()
  --@include shared/only_master
  return redis.error_reply('LATCHKEY_UNSET nobody has set the permits')
end

-- announce tells the waiters how many permits are available. It sends positive numbers only: others
-- would be an error in the listeners of Redisson. It returns how many subscribers there are.
local function announce(n)
  return n > 0 and tell(publish, channel, string.format('%.0f', n)) or 0
end
