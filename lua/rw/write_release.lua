-- Give back a write hold, in part or in whole, and downgrade it if the owner still
-- reads; also the undo of an acquisition, and the way out for a writer that waits.
--
--@keys key leases writers notes queue=nil
--@args owner count waiting publish channel raiseTo own next prefix suffix counted full waits stale queueName
--@args keepFor='0'
--
--   leases, writers, notes  see rw/state.lua
--   queue      see queue/hand_over.lua; left out if it cannot be used: then nothing is handed over
--   count      write holds of the owner after this call
--   waiting    '1' if the owner may be noted as a waiting writer
--   raiseTo    ms to which the remaining time is raised if holds are left, or 0
--   own, next, full  as in lock/release.lua
--   stale      ms for which the next one counts as a waiting writer
--   keepFor    with a count of '0' the ms for which the lock stays taken, but never longer than its
--              remaining lease. Until then a writer <owner>:kept holds it, which no acquisition uses. If
--              the owner also reads, it keeps reading
--
-- Reply   nil: this ownership does not hold the lock; nothing changed, except that the owner no
--         longer waits
--         status HELD: the owner still holds the lock for writing
--         integer: nobody writes any more, or the lock stays taken; how many strangers received
--         the message, -1 if the server refused it
--         array: the lock has a new owner, which writes; that owner and 0
--         error WRONGTYPE: the key is another kind of object; the owner is no longer a waiting
--         writer, and nothing else changed
--
-- A lock that becomes free goes to the next writer in the queue, unless readers have waited. A lock
-- that is found free is handed over too: this repairs a hand-over that was lost.
--
-- Cost: 5 commands if nobody waits, 11 if readers do, 20 with a grant, 6 more with next; 20 with
-- keepFor; 10 to stop waiting; 4 at most if nothing changes. O(log n) in the readers and the waiting
-- writers. Works on a server that is out of memory. Idempotent: counts are absolute; only the call that
-- frees the lock enters next.
count = tonumber(count)
if queue ~= queueName then
  queue = nil
end
--@include rw/end_write

-- stopWaiting removes the owner from the waiting writers. If it was the last, the readers
-- that it kept out may come.
local function stopWaiting()
  if redis.call('zrem', writers, owner) == 1 and not waitingWriter() then
    redis.call('hdel', notes, 'since')
    tellAll(publish, channel)
  end
end

-- heal hands over a lock that nobody holds. During the turn of readers, it tells the first of the
-- queue to retry after that turn, because the waiter that was told before may have just left.
local function heal()
  if not queue or not waitingWriter() then
    return
  end
  local open = tonumber(redis.call('hget', notes, 'open') or 0) - clock()
  if open > 0 then
    --@include queue/ask_first
    askFirst(open)
  else
    --@include rw/hand_over
    handOverToWriter('')
  end
end

if queue and own ~= '' then
  redis.pcall('zrem', queue, own, '~' .. owner)
end
if waiting == '1' then
  stopWaiting()
end
--@include rw/look
if writes == 0 then
  --@include shared/only_master
  if not mode and keepFor == '0' then
    heal()
  end
  return false
end
if keepFor ~= '0' then
  --@include shared/time_left
  local left = timeLeft(tonumber(keepFor))
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
  --@include queue/ask_first
  askFirst(left + 1)
  return tellAll(publish, channel) < 0 and -1 or 0
end
if count > 0 then
  redis.call('hdel', key, '') -- lets the rest run on a server that is out of memory
  redis.call('hset', key, owner .. ':write', count)
  local lease = tonumber(raiseTo)
  if lease > 0 then
    hold(owner .. ':write', lease, true)
  end
  return redis.status_reply('HELD')
end
return endWrite(reads)
