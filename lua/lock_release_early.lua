-- Give back the last hold of a re-entrant lock that is to stay taken for a while: see
-- stay_taken.lua. Nobody holds it until then.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- KEYS[2] queue (see hand_over.lua), unless it cannot be used
-- ARGV[1] owner
-- ARGV[2] ms for which the lock is to stay taken
-- ARGV[3] '' if the owner was made by this client, or the name of its part
-- ARGV[4] channel of the lock, ARGV[5] PUBLISH or SPUBLISH
-- ARGV[6] '', or the entry of the owner, if it may be in the queue
-- ARGV[7], ARGV[8] prefix and suffix of the channel of a client
-- ARGV[9] '1' if the server counts all receivers of a message
--
-- Reply   nil: this client has no part in the lock; its entry is no longer in the queue
--         status HELD: other clients of the same owner still hold the lock
--         integer: nobody holds the lock, which stays taken; how many subscribers received the
--         message, -1 if the server refused it
--
-- Waiters may rely on a longer lease. So the channel gets the message of a release, and each
-- listener retries and learns how long to wait. The first of the queue is told to retry when the
-- time is over.
--
-- Cost: 9 commands at most. Works on a server that is out of memory. Idempotent: the owner is gone
-- after the first time; on a lock of somebody else it does nothing.
local key, queue = KEYS[1], KEYS[2]
local owner, me, channel, publish = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local prefix, suffix, counted = ARGV[7], ARGV[8], ARGV[9]
--@include tell
if queue and ARGV[6] ~= '' then
  redis.pcall('zrem', queue, ARGV[6])
end
--@include stay_taken
if queue then
  --@include ask_first
  pcall(askFirst, key, left + 1)
end
return tell(publish, channel)
