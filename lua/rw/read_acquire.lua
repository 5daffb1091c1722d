-- Acquire a read/write lock for reading, or enter it once more (Redisson RReadWriteLock).
--
--@keys key leases writers notes leaseKey
--@args owner lease count number waiting firstBar
--
--   leases, writers, notes  see rw/state.lua
--   leaseKey  of the hold: tag, owner, 'rwlock_timeout' and count
--   count     read holds of the owner after this call; above 1 it is a re-entry
--   number    of this read ownership if the owner also writes, else ''
--   waiting   '1' if the caller waits, '2' if it was refused before, else '0'
--   firstBar  ms for which waiting writers keep new readers out the first time
--
-- Reply   nil: acquired
--         array: refused (see rw/refusal.lua)
--         error LATCHKEY_GONE: the hold to be entered is over; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- A new reader is refused while somebody writes, and while a writer waits, even if the lock is
-- free until that writer takes it. Waiting writers bar readers for one bar, then, after a pause of
-- a fifth of the first bar, for twice as long, and so on up to a minute at a time. After a write,
-- readers that have waited go first: until they have come and gone, or for a tenth of a second.
-- Owners that already read, and the writer itself, are never refused. A writer whose lease is over
-- is removed if its own reads have kept the lock alive. A new reader removes readers whose leases are over.
--
-- Cost: 13 commands alongside other readers, 10 if the lock is free, 4 to 8 if the reader is refused.
-- O(log n) in the readers. Idempotent: counts are absolute.
lease, count = tonumber(lease), tonumber(count)
--@include rw/state

-- barred returns for how many more ms a new reader is barred, nil if it is not.
local function barred(since, open)
  if not since or waiting == '2' and tonumber(open or 0) > clock() or not waitingWriter() then
    return
  end
  local waited, bar = now - tonumber(since), tonumber(firstBar)
  local pause = math.ceil(bar / 5)
  while waited >= bar + pause do
    waited, bar = waited - bar - pause, math.min(2 * bar, longestBar)
  end
  if waited < bar then
    return bar - waited
  end
end

-- refused returns how many ms the owner has to wait, nil if it need not. It notes that the owner
-- waits, unless that was just noted, so that readers get their turn after a write.
local function refused(mode)
  local note, bar, pause = redis.call('hmget', notes, 'since', 'open', 'readers'), tonumber(firstBar), nil
  if mode == 'write' then
    pause = left()
  else
    pause = barred(note[1], note[2])
  end
  if pause and waiting ~= '0' and tonumber(note[3] or 0) < clock() + bar * 0.9 then
    -- On a server that is out of memory, the readers' turn may be missed.
    redis.pcall('hset', notes, 'readers', score(bar))
    raise(notes, 2 * longestBar)
  end
  return pause
end

findLast(owner)
--@include rw/look
if mode == 'write' and writes == 0 and not (lasts() and isWrite(other)) then
  mode = reap(mode)
end
local known = number ~= '' and redis.call('hget', notes, owner)
if known and tonumber(known) > tonumber(number)
  or count > 1 and reads == 0
  or number ~= '' and writes == 0 and (reads == 0 or known ~= number) then
  --@include shared/only_master
  return redis.error_reply('LATCHKEY_GONE the hold is over')
end

if reads == 0 and writes == 0 then
  local pause = refused(mode)
  if pause then
    --@include rw/refusal
    return refusal(pause, mode == 'write' and mode)
  end
end
if not mode then
  begin('read', owner, count, lease)
  redis.call('set', leaseKey, '1', 'px', lease)
  return false
end
redis.call('hset', key, owner, count)
if number ~= '' then
  redis.call('hset', notes, owner, number)
  raise(notes, 2 * longestBar + lease)
end
hold(owner, lease, reads > 0, leaseKey)
if reads == 0 and writes == 0 then
  reap(mode) -- holders that have crashed
end
return false
