-- Give back one permit of the client that acquired it; also the undo of an acquisition
-- whose outcome is unknown, and the way out for an acquisition that no longer waits.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- KEYS[3] reservation (see sem_reserve.lua), KEYS[4] kind (see number_kind.lua)
-- KEYS[5] mark of an acquisition that was given up, for leases without an end only
-- ARGV[1] id, as bytes
-- ARGV[2] name of the acquisition
-- ARGV[3] PUBLISH or SPUBLISH, ARGV[4] channel
-- ARGV[5] ms for which to keep the mark, '' for no mark
--
-- Reply   nil: the permit is not held, or its lease was over
--         integer: it is given back; how many subscribers received the message, -1 if the
--         server refused it
--         error WRONGTYPE: the key is another kind of object, to which nothing can be
--         given back; the permit is no longer held
--
-- Cost: about 9 commands; O(log p). Works on a server that is out of memory. Idempotent:
-- ids are used once.
local key, held, reserve, kind, publish, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3], ARGV[4]
local me = ARGV[2]
--@include tell
--@include sem_state
--@include permit_state
--@include sem_reserve

local score = redis.call('zscore', held, ARGV[1])
redis.call('zrem', held, ARGV[1]) -- lets the rest run on a server that is out of memory
if ARGV[5] ~= '' then
  redis.call('set', KEYS[5], '1', 'px', ARGV[5])
end
local kept = letGo(reserved())
local free, wrong = look()
if wrong then
  return wrong
end
if score and free then
  free = redis.call('incrby', key, 1)
end
local receivers = 0
if free and (kept or score) then
  receivers = offer(free)
end
if score and not lapsed(score) then
  return receivers
end
return false
