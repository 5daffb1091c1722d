-- Give back a read hold, in part or in whole; also the undo of an acquisition.
--
--@keys key leases writers notes queue firstLease...
--@args owner count number publish channel raiseTo prefix suffix counted waits queueName
--
--   leases, writers, notes  see rw/state.lua
--   queue       see queue/hand_over.lua; left out if it cannot be used: then nothing is handed over
--   firstLease  and on: lease key of hold i of the owner, for all holds that it may have had
--   count       read holds of the owner after this call
--   number      of this read ownership if the owner also writes, else ''
--   raiseTo     ms to which the remaining time is raised if holds are left, or 0
--
-- Reply   nil: this ownership has no part in the lock; nothing changed
--         status HELD: the owner or others still hold the lock
--         integer: the lock is free; how many subscribers received the message, -1 if the
--         server refused it
--         array: the last reader has left, and a writer owns the lock; that owner and 0
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- When the longest lease goes, the remaining time of the lock falls to the longest lease that is
-- left, including that of the owner's write hold. It does not fall by less than a tenth, nor if a
-- reader of Redisson is left, whose lease is not known here.
--
-- Cost: 5 commands alongside others, 5 more if the longest lease goes; 6 if nobody is left, 10 if a
-- writer waits, 18 with a grant; 4 at most if nothing changes. O(log n) in the readers. Works on a
-- server that is out of memory. Idempotent: counts are absolute.
count = tonumber(count)
if queue ~= queueName then
  queue, firstLease = nil, firstLease - 1
end
--@include rw/state

-- delete removes the lease keys of the owner except the first ones, and other keys with them.
local function delete(but, others)
  local all = others or {}
  for i = firstLease + but, #KEYS do
    all[#all + 1] = KEYS[i]
  end
  for i = 1, #all, 1000 do
    redis.call('del', unpack(all, i, math.min(i + 999, #all)))
  end
end

-- leave removes the lease keys of a lock that nobody holds, and hands it over.
local function leave()
  if not waitingWriter() then
    delete(0, {key, leases, writers, notes})
    return tell(publish, channel)
  end
  redis.call('hdel', notes, 'open', owner) -- the readers whose turn it was have come and gone
  delete(0, {key, leases})
  --@include rw/hand_over
  return handOverToWriter('') or tell(publish, channel)
end

-- outlasts reports whether the lock must last as long as before, or at most a tenth shorter.
local function outlasts()
  return other and otherEnd >= lastEnd or lasts() and (lastEnd - otherEnd) * 10 <= otherEnd - now
end

findLast(owner)
--@include rw/look
if not mode or reads == 0 then
  redis.call('zrem', leases, owner)
  return false
end
if number ~= '' and redis.call('hget', notes, owner) ~= number then
  --@include shared/only_master
  return false
end

if count > 0 then
  redis.call('hdel', key, '') -- lets the rest run on a server that is out of memory
  delete(count)
  redis.call('hset', key, owner, count)
  hold(owner, tonumber(raiseTo), true, KEYS[firstLease + count - 1])
  return redis.status_reply('HELD')
end
if not other and redis.call('hlen', key) == 2 then -- mode and owner
  return leave()
end
delete(0)
redis.call('hdel', key, owner)
redis.call('zrem', leases, owner)
if number ~= '' and writes == 0 then
  -- Otherwise the note stays, against late copies, for as long as the write hold.
  redis.call('hdel', notes, owner)
end
if not outlasts() then
  if not lasts() and (not reap(mode) or redis.call('hlen', key) <= 1) then
    return leave()
  end
  fall()
end
return redis.status_reply('HELD')
