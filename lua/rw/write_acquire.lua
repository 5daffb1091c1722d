-- Acquire a read/write lock for writing, or enter it once more (Redisson RReadWriteLock).
--
--@keys key leases writers notes queue=nil
--@args owner lease count stale entry oldEntry queueName poll
--
--   leases, writers, notes  see rw/state.lua
--   queue     see queue/hand_over.lua; left out if the owner has no entry or it cannot be used
--   count     write holds of the owner after this call; above 1 it is a re-entry
--   stale     ms for which the owner then counts as a waiting writer, '' if it does not wait
--   entry     of the owner, to wait in the queue if it is refused, or ''
--   oldEntry  of the owner, if it may be in the queue already, or ''
--   poll      '', or the ms after which a poller polls again (see queue/poller.lua)
--
-- Reply   nil: acquired
--         array: refused (see rw/refusal.lua); whether a holder is of Redisson is known only if
--         the owner waits
--         error LATCHKEY_GONE: a re-entry, but the hold is over; nothing changed
--         error LATCHKEY_UPGRADE: the owner reads, and would wait for itself; nothing
--         changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- A waiting writer is noted, and keeps new readers out (see rw/read_acquire.lua). If it retries within
-- a tenth of that time, it is not noted again. Holders whose leases are over are removed,
-- 64 at most in one call.
--
-- Cost: 10 commands if nobody else is there, 11 after a wait; 16 if it is refused, 6 if it is refused
-- again; 3 more to join the queue, 4 if the entry is in it already, 4 more for a poller. O(log n) in the
-- readers and the waiting writers. Idempotent: counts are absolute; a re-entry neither extends nor shortens the lease.
lease, count, stale = tonumber(lease), tonumber(count), tonumber(stale)
queue = queue == queueName and queue
--@include rw/state

findLast(owner)
--@include rw/look
if count > 1 and writes == 0 then
  --@include shared/only_master
  return redis.error_reply('LATCHKEY_GONE the hold is over')
end
if writes > 0 then
  redis.call('hset', key, owner .. ':write', count)
  hold(owner .. ':write', lease, true)
  return false
end
if reads > 0 then
  return redis.error_reply('LATCHKEY_UPGRADE a reader cannot become a writer')
end

local last = redis.call('zscore', writers, owner)
local noted = stale and last and tonumber(last) > clock() + stale * 0.9
if mode and not (noted and lasts()) then
  mode = reap(mode)
end
local pause, stranger
if mode then
  pause = left()
  stranger = stale and redis.call('hlen', key) - 1 > redis.call('zcard', leases) -- its lease is not noted
else
  local turnOfReaders = tonumber(redis.call('hget', notes, 'open') or 0) - clock()
  pause = turnOfReaders > 0 and turnOfReaders
end
if pause then
  if stale and not noted then
    redis.call(waitingWriter() and 'hsetnx' or 'hset', notes, 'since', score(0))
    waitsToWrite(owner, stale)
    raise(notes, 2 * longestBar + stale)
    pause = mode and redis.call('pttl', key) == -1 and -1 or pause
  end
  local since, pollIn
  if queue and entry ~= '' then
    --@include queue/enqueue
    since, pollIn = enqueue(entry, poll)
  end
  --@include rw/refusal
  return refusal(pause, mode, stranger, since, pollIn)
end

begin('write', owner .. ':write', count, lease)
if last then
  redis.call('zrem', writers, owner)
end
if queue and oldEntry ~= '' then
  redis.pcall('zrem', queue, oldEntry, '~' .. owner)
end
return false
