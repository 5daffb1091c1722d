-- Give up an acquisition of permits whose outcome is unknown, or that no longer waits: the
-- permits that it took are given back, its reservation ends, and a copy of it that arrives
-- late does nothing.
--
-- KEYS[1] permits, KEYS[2] reservation (see sem_reserve.lua), KEYS[3] note (see op.lua)
-- KEYS[4] kind (see number_kind.lua)
-- ARGV[1] client, ARGV[2] number of the operation
-- ARGV[3] PUBLISH or SPUBLISH, ARGV[4] channel
--
-- Reply   integer: how many permits were given back, negative for a debt
--         error WRONGTYPE: the key is another kind of object, to which nothing can be
--         given back; a late copy still does nothing
--
-- Cost: at most 11 commands. Works on a server that is out of memory. Idempotent: the note
-- says that the operation was given up.
local key, reserve, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, number, publish, channel = ARGV[1] .. ':' .. ARGV[2], ARGV[2], ARGV[3], ARGV[4]
--@include tell
--@include op
--@include clock
--@include sem_state
--@include sem_reserve

local done, past = recall()
if past then
  return 0
end
room()
local kept = letGo(reserved())
remember(void)
local free, wrong = look()
if not free then
  return wrong or 0
end
local back = tonumber(done or 0)
if back ~= 0 then
  free = redis.call('incrby', key, back)
end
if kept or back > 0 then
  announce(free)
end
return back
