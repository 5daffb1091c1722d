-- Turn a write hold into a read hold, in one step.
--
--@keys key leases writers notes leaseKey
--@args owner lease count number publish channel waits
--
--   leases, writers, notes  see rw/state.lua
--   leaseKey  of the new read hold
--   count     read holds of the owner after this call
--   number    of the read ownership
--
-- Reply   nil: the owner does not write; nothing changed
--         integer: the owner reads and nobody writes; how many strangers received the message,
--         -1 if the server refused it, -2 if that was so before this call
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Cost: 27 commands, 1 more if others wait; O(log n) in the readers. Works on a server that is out of
-- memory. Idempotent: counts are absolute.
lease, count = tonumber(lease), tonumber(count)
local next = ''
local queue, prefix, suffix, counted, full, stale -- for a lock that becomes free
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
hold(owner, lease, reads > 0, leaseKey)
return endWrite(count)
