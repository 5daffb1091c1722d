-- Give back a read hold, in part or in whole; also the undo of an acquisition.
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw_state.lua)
-- KEYS[5] queue (see grant.lua), unless it cannot be used: then nothing is handed over
-- then    lease key of hold i of the owner, for all that it may have had
-- ARGV[1] owner
-- ARGV[2] read holds of the owner after this call
-- ARGV[3] number of this read ownership if the owner writes too, else ''
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6] ms to which the remaining time is raised if holds are left, or 0
-- ARGV[7], ARGV[8] what the channel of a client begins and ends with
-- ARGV[9] '1' if the server counts all receivers of a message
-- ARGV[10] channel on which all clients of this library listen that wait for the lock
-- ARGV[11] name of the queue
--
-- Reply   nil: this ownership has no part in the lock; nothing changed
--         status HELD: the lock is held still, by the owner or others
--         integer: the lock is free; how many subscribers were told, -1 if the server
--         refused the message
--         array: the last reader has left, and somebody writes; that owner and 0
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- When the longest lease goes, the time of the lock falls to the longest that is left,
-- the owner's write hold included, but not by less than a tenth, and not if a reader of Redisson
-- is among the rest, whose leases are not known here.
--
-- Cost: 5 commands beside others, 5 more if the longest lease goes; 6 if nobody is left, 9 if a
-- writer waits, 17 with a grant; 4 at most if nothing changes. O(log n) in the readers. Works on a server that is
-- out of memory. Idempotent: counts are absolute.
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, count, number, publish, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local prefix, suffix, counted, waits = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local queue, firstLease = KEYS[5], 6
if queue ~= ARGV[11] then
  queue, firstLease = nil, 5
end
--@include tell
--@include rw_state

-- delete removes the lease keys of the owner but for so many, and other keys with them.
local function delete(but, others)
  local all = others or {}
  for i = firstLease + but, #KEYS do
    all[#all + 1] = KEYS[i]
  end
  for i = 1, #all, 1000 do
    redis.call('del', unpack(all, i, math.min(i + 999, #all)))
  end
end

-- leave hands a lock over that nobody holds, and removes its lease keys.
local function leave()
  if not waitingWriter() then
    delete(0, {key, leases, writers, notes})
    return tell(publish, channel)
  end
  redis.call('hdel', notes, 'open', owner) -- those whose turn it was have come and gone
  delete(0, {key, leases})
  lastEnd = nil
  --@include rw_hand_over
  return toWriter('') or tell(publish, channel)
end

-- outlasts tells whether the lock has to last no shorter than before, by a tenth at most.
local function outlasts()
  return other and otherEnd >= lastEnd or lasts() and (lastEnd - otherEnd) * 10 <= otherEnd - now
end

findLast(owner)
local mode, reads, writes, wrong = look(owner)
if wrong then
  return wrong
end
if not mode or reads == 0 then
  redis.call('zrem', leases, owner)
  return false
end
if number ~= '' and redis.call('hget', notes, owner) ~= number then
  return false
end

if count > 0 then
  redis.call('hdel', key, '') -- lets the rest pass on a server at its limit
  delete(count)
  redis.call('hset', key, owner, count)
  hold(owner, tonumber(ARGV[6]), true, KEYS[firstLease + count - 1])
  return redis.status_reply('HELD')
end
if not other and redis.call('hlen', key) == 2 then -- mode and owner
  return leave()
end
delete(0)
redis.call('hdel', key, owner)
redis.call('zrem', leases, owner)
if number ~= '' and writes == 0 then
  -- Else it stays, as a mark against late copies, for as long as the write hold.
  redis.call('hdel', notes, owner)
end
if not outlasts() then
  if not lasts() and (not reap(mode) or redis.call('hlen', key) <= 1) then
    return leave()
  end
  fall()
end
return redis.status_reply('HELD')
