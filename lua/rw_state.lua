-- Fragment: a read/write lock. It needs the locals key, leases, writers and notes.
--
--   key      hash: mode = read or write, <owner> = read holds, <owner>:write = write
--            holds; Redisson's, which allows no other field
--   leases   sorted set owner -> ms at which the lease of its read holds is over, for
--            readers of this library only. Redisson sees the lease keys instead, and
--            has to look at all of them to know who still reads.
--   writers  sorted set owner -> ms until which a waiting writer counts as alive
--   notes    hash: since = ms from which waiting writers bar new readers, readers =
--            ms until which readers are known to wait, open = ms until which it is
--            their turn after a write; <owner> = number of the read tenure of an
--            owner that also writes
--
-- No function looks at all readers or writers.
local reapBatch, turn, longestBar = 64, 100, 60000
local now

local function clock()
  if not now then
    local time = redis.call('time')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return now
end

-- look returns mode, the read holds and the write holds of an owner. A key that is
-- another lock's is an error.
local function look(owner)
  local state = redis.call('hmget', key, 'mode', owner, owner .. ':write')
  if not state[1] and redis.call('exists', key) == 1 then
    return nil, nil, nil, redis.error_reply('WRONGTYPE the key holds another kind of lock')
  end
  return state[1], tonumber(state[2] or 0), tonumber(state[3] or 0)
end

-- raise lets a key live for ms at least.
local function raise(what, ms)
  if redis.call('pttl', what) < ms then
    redis.call('pexpire', what, ms)
  end
end

-- reap removes readers whose leases are over, a batch at most. A crashed one is not
-- kept by the renewals of the others.
local function reap()
  local over = redis.call('zrangebyscore', leases, '-inf', clock(), 'limit', 0, reapBatch)
  if #over > 0 then
    redis.call('hdel', key, unpack(over))
    redis.call('zrem', leases, unpack(over))
    redis.call('hdel', notes, unpack(over))
  end
end

-- lastLease returns how many ms the longest lease of our readers goes on, nil if we
-- have none. One that the hash does not know any more does not count.
local function lastLease()
  for _ = 1, 8 do
    local last = redis.call('zrange', leases, -1, -1, 'withscores')
    if not last[1] then
      return
    end
    if redis.call('hexists', key, last[1]) == 1 then
      return tonumber(last[2]) - clock()
    end
    redis.call('zrem', leases, last[1])
  end
end

-- waitingWriter tells whether a writer waits that is alive.
local function waitingWriter()
  local last = redis.call('zrange', writers, -1, -1, 'withscores')
  return last[1] and tonumber(last[2]) > clock()
end

-- tidy removes what stands beside the lock when nobody needs it.
local function tidy()
  if not waitingWriter() then
    redis.call('del', writers, notes)
  end
end

-- free removes the lock and tells everybody: '1' after a write, '0' after a read.
local function free(publish, channel, message)
  redis.call('del', key, leases)
  return tell(publish, channel, message)
end
