-- Give back a re-entrant lock, in part or in whole; also the undo of an
-- acquisition and the forced release.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- ARGV[1] owner
-- ARGV[2] hold count of this client after this call; -1 drops the whole hold of
--         the owner, whatever its count
-- ARGV[3] '' if the owner was made by this client, else the name of its part
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel of the lock
-- ARGV[6] ms to which the remaining time is raised if the lock stays held, or 0
--
-- Reply   nil: this client has no part in the lock; nothing changed
--         status HELD: the owner holds it still
--         integer: the lock is free; how many subscribers were told, -1 if the
--         server refused the message
--
-- Cost: 3 commands for the last release. Works on a server that is out of memory.
-- Idempotent: counts are absolute; on a lock of somebody else it does nothing.
local key, owner, me = KEYS[1], ARGV[1], ARGV[3]
--@include tell
--@include lock_leave

local left = leave(tonumber(ARGV[2]), tonumber(ARGV[6]))
if left == 'FREE' then
  return tell(ARGV[4], ARGV[5])
end
return left and redis.status_reply(left)
