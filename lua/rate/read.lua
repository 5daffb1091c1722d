-- Fragment: reads a rate limiter, as it is now.
--
--   key  string: rate <rate> <whose> <level> <at> <place>
--          rate   the rate in force: <n>/<period in µs>/<burst>
--          whose  own: the rate of the last caller; set: a rate that counts for all callers
--          level  how many requests were let through or reserved and have not drained since; n drain in
--                 each period
--          at     µs at which that was so
--          place  place of the last request in the order of all; when all have drained, the order goes
--                 on at the time of the server in µs
--   own  the rate of the caller
--
-- This is the generic cell rate algorithm, as a leaky bucket: a request may go when the level, with
-- the request, has drained to the burst. The level is in requests, so it says the same under any
-- rate. If the clock of the server is set back, nothing drains until the next call.
--@needs key own
--@include shared/clock
clock()
local rate, whose, level, place, n, per, burst
local behind = false -- the clock of the server was set back

-- use makes a rate the one in force.
local function use(other)
  rate = other
  n, per, burst = string.match(rate, '^(%d+)/(%d+)/(%d+)$')
  n, per, burst = tonumber(n), tonumber(per), tonumber(burst)
end

local value = redis.call('get', key)
if value then
  local since, at
  rate, whose, since, at, place = string.match(value, '^rate (%d+/%d+/%d+) (%l+) (%S+) (%d+) (%d+)$')
  if not rate then
    --@include shared/only_master
    return redis.error_reply('WRONGTYPE the key holds no rate limiter')
  end
  use(rate)
  place = tonumber(place)
  behind = micros < tonumber(at)
  level = behind and tonumber(since) or math.max(0, since - (micros - at) * n / per)
end
if not value or level == 0 then
  level, place = 0, micros
end
if not value or whose == 'own' and rate ~= own then
  whose = 'own'
  use(own)
end
