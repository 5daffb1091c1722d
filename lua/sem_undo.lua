-- Give up an acquisition of permits whose outcome is unknown, or that waits no longer:
-- what it took is given back, what is kept for it is let go, and a copy of it that
-- arrives late does nothing.
--
-- KEYS[1] permits, KEYS[2] reservation (see sem_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] channel
-- ARGV[1] client, ARGV[2] number of the operation
-- ARGV[3] PUBLISH or SPUBLISH
--
-- Reply   integer: how many permits were given back; negative if a debt was
--
-- Cost: at most 9 commands. Works on a server that is out of memory. Idempotent: what
-- was given up is noted.
local key, reserve, note, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, number, publish = ARGV[1] .. ':' .. ARGV[2], ARGV[2], ARGV[3]
--@include tell
--@include op
--@include sem_state

local done, past = recall()
if past then
  return 0
end
room()
local kept = reserved() == me
if kept then
  redis.call('del', reserve)
end
local free = look()
local back = tonumber(done or 0)
if free and back ~= 0 then
  free = redis.call('incrby', key, back)
end
remember(void)
if free and (kept or back > 0) then
  announce(free)
end
return back
