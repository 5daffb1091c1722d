-- Set the rate of a rate limiter for all callers.
--
--@keys key note
--@args number own wanted
--
--   wanted    the rate; '': the rate of each caller counts again
--
-- Reply   1
--
-- Requests that are reserved keep their times, and count as many as before.
--
-- Cost: at most 5 commands. Idempotent: the operation is noted.
--@include shared/op
local before, over = recall()
if before or over then
  return over or tonumber(before)
end
--@include rate/read
if wanted ~= '' then
  whose = 'set'
  use(wanted)
elseif value then -- the next caller brings its own
  whose = 'own'
  use(string.match(value, '^rate (%S+)'))
end
remember(1)
if value or wanted ~= '' then
  --@include rate/write
end
return 1
