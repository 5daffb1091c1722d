-- Acquire a read/write lock for reading, or enter it once more (Redisson
-- RReadWriteLock).
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw/state.lua)
-- KEYS[5] lease key of the hold: tag, owner, 'rwlock_timeout' and ARGV[3]
-- ARGV[1] owner
-- ARGV[2] lease in ms
-- ARGV[3] read holds of the owner after this call; above 1 it is a re-entry
-- ARGV[4] number of this read ownership if the owner also writes, else ''
-- ARGV[5] '1' if the caller waits, '2' if it was refused before, else '0'
-- ARGV[6] ms for which waiting writers keep new readers out the first time
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
-- is removed if its own reads have kept the lock alive. The first new reader in each second removes
-- readers whose leases are over.
--
-- Cost: 9 commands alongside other readers, 2 more once in a second; 9 if the lock is free, 4 to 8 if
-- the reader is refused. O(log n) in the readers. Idempotent: counts are
-- absolute.
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, lease, count, number = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
--@include rw/state

-- barred returns for how many more ms a new reader is barred, nil if it is not.
local function barred(since, open)
  if not since or ARGV[5] == '2' and tonumber(open or 0) > clock() or not waitingWriter() then
    return
  end
  local waited, bar = now - tonumber(since), tonumber(ARGV[6])
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
  local note, bar, pause = redis.call('hmget', notes, 'since', 'open', 'readers'), tonumber(ARGV[6]), nil
  if mode == 'write' then
    pause = left()
  else
    pause = barred(note[1], note[2])
  end
  if pause and ARGV[5] ~= '0' and tonumber(note[3] or 0) < clock() + bar * 0.9 then
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

if not quiet and reads == 0 and writes == 0 then
  local pause = refused(mode)
  if pause then
    --@include rw/refusal
    return refusal(pause, mode == 'write' and mode)
  end
end
if not mode then
  begin('read', owner, count, lease)
  redis.call('set', KEYS[5], '1', 'px', lease)
  return false
end
redis.call('hset', key, owner, count)
if number ~= '' then
  redis.call('hset', notes, owner, number)
  raise(notes, 2 * longestBar + lease)
end
hold(owner, lease, reads > 0, KEYS[5])
if reads == 0 and writes == 0 and otherSecond(lease) ~= 0 then
  reap(mode) -- holders that have crashed, from time to time
end
return false
