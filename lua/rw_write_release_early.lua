-- Give back the last write hold of a read/write lock that is to stay taken for a while. Until then a
-- writer <owner>:kept holds it, which no acquisition uses. If the owner also reads, it keeps reading.
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw_state.lua)
-- KEYS[5] queue (see hand_over.lua), unless it cannot be used
-- ARGV[1] owner
-- ARGV[2] ms for which the lock is to stay taken; never longer than its remaining lease
-- ARGV[3] '1' if the owner may be noted as a waiting writer
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6] '', or the entry of the owner, if it may be in the queue
-- ARGV[7], ARGV[8] prefix and suffix of the channel of a client
-- ARGV[9] '1' if the server counts all receivers of a message
-- ARGV[10] name of the queue
--
-- Reply   nil: this ownership does not hold the lock; nothing changed, except that the owner no
--         longer waits
--         integer: the owner does not write, and the lock stays taken; 0, or -1 if the server
--         refused the message
--         error WRONGTYPE: the key is another kind of object
--
-- Cost: 20 commands at most; O(log n) in the readers and the waiting writers. Works on a server
-- that is out of memory. Idempotent: the owner does not write after the first time.
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, publish, channel = ARGV[1], ARGV[4], ARGV[5]
local prefix, suffix, counted, queue = ARGV[7], ARGV[8], ARGV[9], KEYS[5]
if queue ~= ARGV[10] then
  queue = nil
end
--@include tell
--@include rw_state
--@include time_left

if queue and ARGV[6] ~= '' then
  redis.pcall('zrem', queue, ARGV[6])
end
if ARGV[3] == '1' then
  redis.call('zrem', writers, owner)
end
local _, reads, writes, wrong = look(owner)
if wrong then
  return wrong
end
if writes == 0 then
  --@include only_master
  return false
end
local left = timeLeft(tonumber(ARGV[2]))
redis.call('hdel', key, '') -- lets the rest run on a server that is out of memory
redis.call('hset', key, owner .. ':kept:write', 1)
redis.call('hdel', key, owner .. ':write')
redis.call('zrem', leases, owner .. ':write')
redis.call('zadd', leases, score(left), owner .. ':kept:write')
raise(leases, left + spare)
if reads == 0 then
  redis.call('pexpire', key, left)
  redis.call('hdel', notes, owner)
end
if queue then
  --@include ask_first
  pcall(askFirst, key, left + 1)
end
return tellAll(publish, channel) < 0 and -1 or 0
