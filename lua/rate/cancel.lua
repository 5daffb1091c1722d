-- Give requests back to a rate limiter that have not gone yet.
--
--@keys key note
--@args number own count at last
--
--   count     number of requests
--   at, last  when they go, and the place of the last of them, as rate/take.lua replied
--
-- Reply   integer: how many requests others may use instead: those that were not reserved again since,
--         0 if they may have gone
--
-- Those that were reserved later keep their times. If as many as they are had been given back, more
-- than the burst could go at once.
--
-- Cost: at most 6 commands. Works on a full server. Idempotent: the operation is noted.
--@include shared/op
local before, over = recall()
if before or over then
  return over or tonumber(before)
end
count, last = tonumber(count), tonumber(last)
--@include rate/read
local back = 0
if micros < tonumber(at) and place >= last then
  back = math.max(0, count - (place - last))
end
if back == 0 then
  return nothing()
end
level = math.max(level - back, math.min(level, place - last))
if place == last then
  place = place - count
end
room()
remember(back)
--@include rate/write
return back
