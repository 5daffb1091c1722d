-- Fragment: a read/write lock.
--
--   key      hash: mode = read or write, <owner> = read holds, <owner>:write = write holds; Redisson's, which
--            allows no other field
--   leases   sorted set: field of the hash -> ms at which the lease of these holds ends, for owners of this
--            library only. Redisson has the leases of readers in their lease keys, all of which it must look at
--            to know who still reads, and loses the lease of a writer when the writer also reads
--   writers  sorted set owner -> ms until which a waiting writer counts as alive
--   notes    hash: since = ms from which waiting writers keep new readers out, readers = ms until which readers
--            are known to wait, open = ms until which it is their turn after a write; <owner> = number of the
--            read ownership of an owner that also writes
--
-- No function looks at all readers or writers.
--@needs key leases writers notes
--@include shared/tell
--@include shared/clock
local reapBatch, turn, longestBar = 64, 100, 60000

-- Of the noted leases, lastEnd is when the last one ends. Of those that are not the given owner's,
-- other is the field of the longest, otherEnd is when it ends, and nextEnd when the one before it ends.
-- nil: not known.
local lastEnd, other, otherEnd, nextEnd

-- findLast sets these. Call it before look, which checks that other still holds the lock: a holder
-- that Redisson removed may still be noted.
local function findLast(owner)
  local some = redis.call('zrange', leases, -2, -1, 'withscores')
  local at = #some - 1
  lastEnd = tonumber(some[at + 1])
  if some[at] == owner then
    at = at - 2
  end
  other, otherEnd, nextEnd = some[at], tonumber(some[at + 1]), tonumber(some[at - 1])
end

-- lasts reports whether the hold that findLast has found is not over.
local function lasts()
  return other and otherEnd > clock()
end

-- found is the field of a holder if other is not known: that of an owner of Redisson, whose lease is not
-- noted.
local found

-- look returns the mode, and the read holds and write holds of an owner. It returns an error for a key
-- that is another kind of lock, or not a lock.
local function look(owner)
  local state = redis.call('hmget', key, 'mode', owner, owner .. ':write', other or '')
  local mode, foreign = state[1], false
  other = state[4] and other
  if not mode then
    foreign = redis.call('exists', key) == 1
  elseif not (state[2] or state[3] or other) then
    --@include shared/shape_hash
    foreign, found = isForeign(key)
  end
  if foreign then
    return nil, nil, nil, redis.error_reply('WRONGTYPE the key holds no read/write lock')
  end
  return mode, tonumber(state[2] or 0), tonumber(state[3] or 0)
end

-- raise makes a key live for at least ms. It also gives that expiry to a key without one.
local function raise(what, ms)
  if redis.call('pttl', what) < ms then
    redis.call('pexpire', what, ms)
  end
end

-- isWrite reports whether a field is that of a writer.
local function isWrite(field)
  return string.sub(field, -6) == ':write'
end

-- remove removes holders from the lock. It returns the mode of the lock afterwards, nil if
-- it is free, and how many of them held it.
local function remove(fields, mode)
  local gone, left = 0, mode
  for _, field in ipairs(fields) do
    if redis.call('hdel', key, field) == 1 then
      gone = gone + 1
      left = isWrite(field) and 'read' or left
    end
  end
  if #fields > 0 then
    redis.call('zrem', leases, unpack(fields))
    redis.call('hdel', notes, unpack(fields))
  end
  if redis.call('hlen', key) <= 1 then
    redis.call('del', key, leases)
    return nil, gone
  end
  if left ~= mode then
    redis.call('hset', key, 'mode', left)
  end
  return left, gone
end

-- reap removes holds whose leases are over, a batch at most, and returns the mode of the lock
-- afterwards, nil if it is free. So renewals of others do not keep a holder that crashed, and
-- renewals of the owner's reads do not keep its write hold.
local function reap(mode)
  local over = redis.call('zrangebyscore', leases, '-inf', clock(), 'limit', 0, reapBatch)
  if #over == 0 then
    return mode
  end
  return (remove(over, mode))
end

-- waitingWriter reports whether a living writer waits.
local function waitingWriter()
  local latest = redis.call('zrange', writers, -1, -1, 'withscores')
  return latest[1] and tonumber(latest[2]) > clock()
end

-- waitsToWrite notes that an owner waits, and counts as alive for ms. It forgets writers that have
-- died.
local function waitsToWrite(owner, ms)
  redis.call('zadd', writers, 'gt', string.format('%.0f', clock() + ms), owner)
  redis.call('zremrangebyscore', writers, '-inf', now - 2 * longestBar)
  redis.call('pexpire', writers, 2 * longestBar + ms)
end

-- fall lowers the remaining time of the lock to the longest lease that is left, if all holders are of
-- this library: the lease of a holder of Redisson is not known here. A lease that Redisson ended by
-- force may still be noted, so fall checks that each noted holder exists. With more leases than a
-- batch it does not check, and changes nothing.
local function fall()
  local noted, fields = redis.call('zrange', leases, 0, reapBatch, 'withscores'), {}
  for i = 1, #noted, 2 do
    fields[#fields + 1] = noted[i]
  end
  if #fields == 0 or #fields > reapBatch or redis.call('hlen', key) - 1 ~= #fields then
    return
  end
  local ours = true
  for i, holds in ipairs(redis.call('hmget', key, unpack(fields))) do
    if not holds then
      redis.call('zrem', leases, fields[i])
      ours = false
    end
  end
  local left = tonumber(noted[#noted]) - clock()
  if ours and left > 0 then
    redis.call('pexpire', key, left)
  end
end

local spare = 1000 -- for how many ms the key of the leases outlives them

local function score(lease)
  return string.format('%.0f', clock() + lease)
end

-- lengthen notes the lease of an owner's holds on one side, and returns its ms. It never shortens a
-- lease. For an earlier hold whose lease is no longer known, it notes at least the remaining time of
-- the lock, because the lock outlives its leases.
local function lengthen(field, lease, before)
  if before then
    if redis.call('zadd', leases, 'xx', 'gt', 'ch', score(lease), field) == 1 then
      return lease
    end
    local noted = tonumber(redis.call('zscore', leases, field) or nil)
    if noted then
      return math.max(lease, noted - clock())
    end
    lease = math.max(lease, redis.call('pttl', key))
  end
  redis.call('zadd', leases, score(lease), field)
  return lease
end

-- hold is lengthen, and makes the lock live as long. leaseKey is the last lease key of a reader: with
-- it Redisson knows that lease, whichever of the reader's holds end.
local function hold(field, lease, before, leaseKey)
  lease = lengthen(field, lease, before)
  if lease <= 0 then
    return
  end
  raise(leases, lease + spare)
  local ttl = redis.call('pttl', key)
  if ttl >= 0 and ttl < lease then -- a key without an expiry keeps none: others hold it too
    redis.call('pexpire', key, lease)
  end
  if leaseKey and (not before or redis.call('pttl', leaseKey) < lease) then
    redis.call('set', leaseKey, '1', 'px', lease)
  end
end

-- left returns the ms after which to retry for a lock that is held.
local function left()
  return lasts() and otherEnd - now or redis.call('pttl', key)
end

-- begin makes an owner the only holder of a free lock.
local function begin(mode, field, holds, lease)
  redis.call('hset', key, 'mode', mode, field, holds)
  if lastEnd then
    redis.call('del', leases) -- after the write that a server without memory refuses
  end
  redis.call('zadd', leases, score(lease), field)
  redis.call('pexpire', leases, lease + spare)
  redis.call('pexpire', key, lease)
end

-- tellAll wakes all waiters with '1'. For that message Redisson counts only threads that already
-- sleep: a thread that was refused and does not sleep yet would miss it, and sleep until the end of
-- the lease that it has seen. The '0' that follows is for that thread.
local function tellAll(publish, channel)
  local receivers = tell(publish, channel, '1')
  tell(publish, channel)
  return receivers
end
