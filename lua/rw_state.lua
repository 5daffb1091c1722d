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

-- look returns mode, the read holds and the write holds of an owner. A key that is
-- another lock's, or no lock's, is an error.
local function look(owner)
  local state = redis.call('hmget', key, 'mode', owner, owner .. ':write')
  local mode, foreign = state[1], false
  if not mode then
    foreign = redis.call('exists', key) == 1
  elseif not (state[2] or state[3]) then
    --@include shape_hash
    foreign = isForeign(key)
  end
  if foreign then
    return nil, nil, nil, redis.error_reply('WRONGTYPE the key holds no read/write lock')
  end
  return mode, tonumber(state[2] or 0), tonumber(state[3] or 0)
end

-- raise lets a key live for ms at least.
local function raise(what, ms)
  if redis.call('pttl', what) < ms then
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
  local gone = 0
  for _, field in ipairs(fields) do
    if redis.call('hdel', key, field) == 1 then
      gone = gone + 1
      mode = isWrite(field) and 'read' or mode
    end
    redis.call('zrem', leases, field)
    redis.call('hdel', notes, field)
  end
  if redis.call('hlen', key) <= 1 then
    redis.call('del', key, leases)
    return nil, gone
  end
  redis.call('hset', key, 'mode', mode)
  return mode, gone
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
  local last = redis.call('zrange', writers, -1, -1, 'withscores')
  return last[1] and tonumber(last[2]) > clock()
end

-- allOurs tells whether all holders are of this library. A lease that Redisson ended by
-- force may still be noted and must not stand for a holder of Redisson; beyond a
-- batch that is not looked into, and the answer is no.
local function allOurs()
  local n = redis.call('zcard', leases)
  if n == 0 or n > reapBatch or redis.call('hlen', key) - 1 ~= n then
    return false
  end
  local fields = redis.call('zrange', leases, 0, -1)
  local all = true
  for i, holds in ipairs(redis.call('hmget', key, unpack(fields))) do
    if not holds then
      redis.call('zrem', leases, fields[i])
      all = false
    end
  end
  return all
end

-- fall lets the time of the lock fall to the longest lease that is left, unless a
-- holder of Redisson may be in it, whose lease is not known here.
local function fall()
  if allOurs() then
    local last = tonumber(redis.call('zrange', leases, -1, -1, 'withscores')[2]) - clock()
    if last > 0 then
      redis.call('pexpire', key, last)
    end
  end
end

-- lengthen notes the lease of an owner's holds on one side, and returns the ms that it
-- has then: it is never shortened. Of a hold that was there before and whose lease is
-- not known any more, all is known that the lock has outlived it.
local function lengthen(field, lease, before)
  local score = tonumber(redis.call('zscore', leases, field) or nil)
  if score then
    lease = math.max(lease, score - clock())
  elseif before then
    lease = math.max(lease, redis.call('pttl', key))
  end
  redis.call('zadd', leases, string.format('%.0f', clock() + lease), field)
  return lease
end

-- hold is lengthen, and lets the lock live for as long. The last lease key of a reader is
-- given too, so that Redisson knows of that lease whichever of its holds go.
local function hold(field, lease, before, leaseKey)
  lease = lengthen(field, lease, before)
  raise(leases, lease)
  raise(key, lease)
  if leaseKey and lease > math.max(redis.call('pttl', leaseKey), 0) then
    redis.call('set', leaseKey, '1', 'px', lease)
  end
end

-- tidy removes what stands beside the lock when nobody needs it.
local function tidy()
  if not waitingWriter() then
    redis.call('del', writers, notes)
  end
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

-- free removes the lock and tells whoever waits: everybody after a write.
local function free(publish, channel, written)
  redis.call('del', key, leases)
  return written and tellAll(publish, channel) or tell(publish, channel)
end
