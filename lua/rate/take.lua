-- Let requests through a rate limiter, now or later.
--
--@keys key
--@args own count longest
--
--   count     number of requests
--   longest   µs that they may wait
--
-- Reply   array of integers: they may go; the µs until then, the time of the server in µs then, and the
--         place of the last of them (see rate/read.lua)
--         integer: they would have to wait for so many µs, which is too long; nothing changed
--         error LATCHKEY_BURST n: the burst is n, so that many requests never go at once; nothing changed
--
-- A repeated script counts the requests again, so less of the rate is used, and never more.
--
-- Cost: 3 commands.
count = tonumber(count)
--@include rate/read
if count > burst then
  --@include shared/only_master
  return redis.error_reply('LATCHKEY_BURST ' .. burst)
end
local over = level + count - burst
local wait = over > 0 and math.min(math.ceil(over * per / n), 9 * 10 ^ 15) or 0
if wait > tonumber(longest) then
  if behind then
    --@include rate/write
  else
    --@include shared/only_master
  end
  return wait
end
level, place = level + count, place + count
--@include rate/write
return {wait, micros + wait, place}
