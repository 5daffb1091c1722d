-- Give back a re-entrant lock, in part or in whole; also the undo of an
-- acquisition, the way out of the queue, and the forced release. A lock that becomes
-- free is handed over: see hand_over.lua.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- KEYS[2] queue (see grant.lua), KEYS[3] fencing counter; without them nothing is handed over
-- ARGV[1] owner
-- ARGV[2] channel of the lock
-- ARGV[3] hold count of this client after this call, '0' for the last release; -1 drops
--         the whole hold of the owner, whatever its count
-- ARGV[4] '' if the owner was made by this client, or the name of its part
-- ARGV[5] '0', or ms to which the remaining time is raised if the lock stays held
-- ARGV[6] 'PUBLISH', or SPUBLISH
-- ARGV[7] '', or the entry of the owner, if it may stand in the queue
-- ARGV[8] '', or the entry of the owner for which this client wants the lock again
-- ARGV[9], ARGV[10] what the channel of a client begins and ends with, 'latchkey:{' and '}'
-- ARGV[11] '1' if the server counts all receivers of a message
-- ARGV[12] '0', or the lease in ms that ARGV[8] has if it is granted the lock in the reply
-- What stands in quotes is usual. From ARGV[3] on, usual arguments at the end are left out.
--
-- Reply   nil: this client has no part in the lock; what stood in the queue does no more
--         status HELD: the owner holds it still
--         integer: the lock is free; how many subscribers were told, -1 if the
--         server refused the message
--         array: the lock has a new owner; that owner and its first fencing token
--
-- ARGV[8] stands in the queue, or owns the lock, if the reply is an integer or an array,
-- and not otherwise. A lock that is found free is handed over too: this heals what was
-- lost.
--
-- Cost: 4 commands for the last release with nobody in the queue, 7 with a grant. Works
-- on a server that is out of memory. Idempotent: counts are absolute; on a lock of
-- somebody else it does nothing, and ARGV[8] is entered only by the call that frees.
local key, queue, counter = KEYS[1], KEYS[2], KEYS[3]
local owner, channel, count, me, publish = ARGV[1], ARGV[2], ARGV[3] or '0', ARGV[4] or '', ARGV[6] or 'PUBLISH'
local own, next, prefix, suffix, counted = ARGV[7] or '', ARGV[8] or '', ARGV[9] or 'latchkey:{', ARGV[10] or '}', ARGV[11] or '1'
--@include tell

-- Most releases are of the only owner, and nobody waits. What that does not need is not even
-- defined before.
if queue and own ~= '' then
  redis.pcall('zrem', queue, own)
end
local left
if count == '0' and me == '' and redis.call('hlen', key) == 1 then
  left = redis.call('hdel', key, owner) == 1 and 'FREE'
else
  --@include lock_leave
  left = leave(tonumber(count), tonumber(ARGV[5] or '0'))
end
if left == 'HELD' then
  return redis.status_reply(left)
end
local first = left == 'FREE' and next == '' and queue and redis.pcall('zpopmin', queue) or nil
if left == 'FREE' and next == '' and not (first and first[1]) then
  return tell(publish, channel)
end
if not left and not (queue and redis.call('exists', key) == 0 and redis.pcall('exists', queue) == 1) then
  return false
end

--@include hand_over
local function give(to, lease)
  redis.call('hset', key, to, '1')
  redis.call('pexpire', key, lease)
end

if left == 'FREE' then
  return handOver('h', key, give, next, ARGV[12], first)
end
pcall(toFirst, 'h', key, give, '')
return false
