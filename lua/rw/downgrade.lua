-- Turn a write hold into a read hold, in one step.
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw/state.lua)
-- KEYS[5] lease key of the new read hold
-- ARGV[1] owner
-- ARGV[2] lease in ms
-- ARGV[3] read holds of the owner after this call
-- ARGV[4] number of the read ownership
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
-- ARGV[7] channel of all clients of this library that wait for the lock
--
-- Reply   nil: the owner does not write; nothing changed
--         integer: the owner reads and nobody writes; how many strangers received the message,
--         -1 if the server refused it, -2 if that was so before this call
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Cost: 23 commands, 5 more if others wait; O(log n) in the readers. Works on a server that is out of
-- memory. Idempotent: counts are absolute.
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, lease, count, number = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local publish, channel, waits, next = ARGV[5], ARGV[6], ARGV[7], ''
--@include rw/end_write

--@include rw/look
if writes == 0 then
  if reads == count and redis.call('hget', notes, owner) == number then
    return -2
  end
  --@include shared/only_master
  return false
end
redis.call('hdel', key, '') -- lets the rest run on a server that is out of memory
redis.call('hset', key, owner, count)
redis.call('hset', notes, owner, number)
raise(notes, 2 * longestBar + lease)
hold(owner, lease, reads > 0, KEYS[5])
return endWrite(count)
