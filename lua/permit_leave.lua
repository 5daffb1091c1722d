-- Give back one permit of the client that acquired it; also the undo of an acquisition
-- whose outcome is unknown, and the way out for one that waits no longer.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- KEYS[3] reservation (see sem_state.lua)
-- KEYS[4] channel
-- KEYS[5] mark of an acquisition that was given up, for leases without an end only
-- ARGV[1] id, as bytes
-- ARGV[2] who: names the acquisition
-- ARGV[3] PUBLISH or SPUBLISH
-- ARGV[4] ms for which the mark is to stand, '' for none
--
-- Reply   nil: the permit is not held, or its lease was over
--         integer: it is given back; how many subscribers were told, -1 if the server
--         refused the message
--
-- Cost: about 6 commands; O(log p). Works on a server that is out of memory. Idempotent:
-- ids are used once.
local key, held, reserve, channel, publish = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3]
--@include tell
--@include sem_state
--@include permit_state

local score = redis.call('zscore', held, ARGV[1])
redis.call('zrem', held, ARGV[1]) -- lets the rest pass on a server at its limit
if ARGV[4] ~= '' then
  redis.call('set', KEYS[5], '1', 'px', ARGV[4])
end
local kept = reserved() == ARGV[2]
if kept then
  redis.call('del', reserve)
end
local free = look()
if score and free then
  free = redis.call('incrby', key, 1)
end
local told = 0
if free and (kept or score) then
  told = announce(free)
end
if score and not lapsed(score) then
  return told
end
return false
