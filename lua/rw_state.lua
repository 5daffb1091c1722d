-- Fragment: a read/write lock. It needs the locals key, leases, writers and notes.
--
--   key      hash: mode = read or write, <owner> = read holds, <owner>:write = write
--            holds; Redisson's, which allows no other field
--   leases   sorted set: field of the hash -> ms at which the lease of these holds is
--            over, for owners of this library only. Redisson knows that of readers by
--            their lease keys, and has to look at all of them to know who still reads;
--            that of a writer is lost on it when the writer reads as well.
--   writers  sorted set owner -> ms until which a waiting writer counts as alive
--   notes    hash: since = ms from which waiting writers bar new readers, readers =
--            ms until which readers are known to wait, open = ms until which it is
--            their turn after a write; <owner> = number of the read ownership of an
--            owner that also writes
--
-- No function looks at all readers or writers.
local reapBatch, turn, longestBar = 64, 100, 60000
--@include clock

-- Of the leases that are noted: when the last of all is over, and whose lasts longest of those of
-- others than an owner, by field, and until when. nil: not known.
local lastEnd, other, otherEnd

-- findLast finds these. It comes before look, which makes sure that the other stands in the lock:
-- whom Redisson has thrown out may still be noted.
local function findLast(owner)
  local some = redis.call('zrange', leases, -2, -1, 'withscores')
  local at = #some - 1
  lastEnd = tonumber(some[at + 1])
  if some[at] == owner then
    at = at - 2
  end
  other, otherEnd = some[at], tonumber(some[at + 1])
end

-- lasts tells whether the hold that findLast has found is not over.
local function lasts()
  return other and otherEnd > clock()
end

-- Nothing stands beside a lock that is free: nobody waits, and it is nobody's turn.
local quiet

-- look returns mode, the read holds and the write holds of an owner. A key that is
-- another lock's, or no lock's, is an error.
local function look(owner)
  local state = redis.call('hmget', key, 'mode', owner, owner .. ':write', other or '')
  local mode, foreign = state[1], false
  other = state[4] and other
  if not mode then
    local there = redis.call('exists', key, key, key, writers, notes) -- the key counts for three
    foreign, quiet = there >= 3, there == 0
  elseif not (state[2] or state[3] or other) then
    --@include shape_hash
    foreign = isForeign(key)
  end
  if foreign then
    return nil, nil, nil, redis.error_reply('WRONGTYPE the key holds no read/write lock')
  end
  return mode, tonumber(state[2] or 0), tonumber(state[3] or 0)
end

-- longer lets a key live for ms if that is longer, and tells whether it was. Before Redis 7 it
-- cannot, and returns nil.
local function longer(what, ms)
  return redis.REDIS_VERSION_NUM and redis.call('pexpire', what, ms, 'gt') == 1
end

-- raise lets a key live for ms at least; one that would live for ever, for so long.
local function raise(what, ms)
  if not longer(what, ms) and redis.call('pttl', what) < ms then
    redis.call('pexpire', what, ms)
  end
end

-- isWrite tells the field of a writer from that of a reader.
local function isWrite(field)
  return string.sub(field, -6) == ':write'
end

-- remove takes holders out of the lock and returns the mode that it has then, nil if
-- it is free, and how many of them there were.
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
    lastEnd, other = nil, nil
    return nil, gone
  end
  if left ~= mode then
    redis.call('hset', key, 'mode', left)
  end
  return left, gone
end

-- reap removes holds whose leases are over, a batch at most, and returns the mode of
-- the lock then: nil if it is free. One that crashed is not kept by the renewals of
-- others, nor is a write hold by those of its owner's reads.
local function reap(mode)
  local over = redis.call('zrangebyscore', leases, '-inf', clock(), 'limit', 0, reapBatch)
  if #over == 0 then
    return mode
  end
  return (remove(over, mode))
end

-- waitingWriter tells whether a writer waits that is alive.
local function waitingWriter()
  local latest = redis.call('zrange', writers, -1, -1, 'withscores')
  return latest[1] and tonumber(latest[2]) > clock()
end

-- waitsToWrite notes that an owner waits, and counts as alive for ms. Writers that have died are
-- forgotten.
local function waitsToWrite(owner, ms)
  redis.call('zadd', writers, 'gt', string.format('%.0f', clock() + ms), owner)
  redis.call('zremrangebyscore', writers, '-inf', now - 2 * longestBar)
  redis.call('pexpire', writers, 2 * longestBar + ms)
end

-- fall lets the time of the lock fall to the longest lease that is left, if all holders are of
-- this library: of a holder of Redisson the lease is not known here. A lease that Redisson ended
-- by force may still be noted and must not stand for a holder of Redisson; beyond a
-- batch that is not looked into, and the time stays.
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

-- The key of the leases lives for a second longer than they do. So it need not be touched for each
-- of them: it is by the first that ends in another second than the last.
local spare = 1000

local function otherSecond(lease)
  return math.floor((clock() + lease) / spare) - math.floor((lastEnd or 0) / spare)
end

local function score(lease)
  return string.format('%.0f', clock() + lease)
end

-- lengthen notes the lease of an owner's holds on one side, and returns the ms that it
-- has then: it is never shortened. Of a hold that was there before and whose lease is
-- not known any more, all is known that the lock has outlived it.
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

-- hold is lengthen, and lets the lock live for as long. The last lease key of a reader is
-- given too, so that Redisson knows of that lease whichever of its holds go.
local function hold(field, lease, before, leaseKey)
  lease = lengthen(field, lease, before)
  if lease <= 0 then
    return
  end
  if not lastEnd then
    raise(leases, lease + spare)
  elseif otherSecond(lease) > 0 then
    redis.call('pexpire', leases, lease + spare)
  end
  if longer(key, lease) == nil then
    raise(key, lease)
  end
  if leaseKey and (not before or redis.call('pttl', leaseKey) < lease) then
    redis.call('set', leaseKey, '1', 'px', lease)
  end
end

-- left returns the ms after which it is worth to ask again for a lock that is held.
local function left()
  return lasts() and otherEnd - now or redis.call('pttl', key)
end

-- begin makes an owner the only holder of a lock that is free.
local function begin(mode, field, holds, lease)
  redis.call('hset', key, 'mode', mode, field, holds)
  if lastEnd then
    redis.call('del', leases) -- after what a server at its limit refuses
  end
  redis.call('zadd', leases, score(lease), field)
  redis.call('pexpire', leases, lease + spare)
  redis.call('pexpire', key, lease)
end

-- tellAll wakes everybody who waits, with '1'. A thread of Redisson that has been
-- refused and does not sleep yet is deaf to it, and would sleep until the lease that
-- it has seen is over: it counts only those that sleep already. The '0' after it is
-- for that one.
local function tellAll(publish, channel)
  local told = tell(publish, channel, '1')
  tell(publish, channel)
  return told
end
