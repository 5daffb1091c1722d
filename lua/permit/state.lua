-- Fragment: a semaphore whose permits have ids and leases.
--
--   key    string: number of free permits, may be negative; Redisson's
--   held   sorted set: id -> ms at which its lease ends, or the number that means
--          never; Redisson's
--
-- The total is the number plus the size of the set. Permits whose lease is over count as
-- available; a script that needs them puts them back in batches.
--@needs key held
--@include semaphore/state
--@include shared/clock
mine = 'permit semaphore'
local never = 922337203685477
local reapBatch = 64

-- ends is the score of a lease that begins now; '' is a lease without an end.
local function ends(lease)
  if lease == '' then
    return string.format('%.0f', never)
  end
  return string.format('%.0f', clock() + tonumber(lease))
end

-- untilEnd returns the ms, as text, after which a semaphore that lives for ttl ms ends with its permits, if that is
-- before the end of a lease that begins now; false if it is not.
local function untilEnd(lease, ttl)
  return ttl >= 0 and (lease == '' or ttl < tonumber(lease)) and string.format('%.0f', math.max(ttl, 1))
end

-- lapsed reports whether the lease with a score is over.
local function lapsed(score)
  return tonumber(score) >= 0 and tonumber(score) <= clock()
end

-- expired returns how many permits have expired but were not put back yet.
local function expired()
  return redis.call('zcount', held, 0, clock())
end

-- offer announces (semaphore/state.lua) the free permits and those that have expired.
local function offer(free)
  return announce(free + expired())
end

-- reclaim removes ids whose leases are over from the set, makes their permits available, and returns how many
-- they are. It does not create the number if nobody has set the permits.
local function reclaim(over)
  if #over > 0 then
    redis.call('zrem', held, unpack(over))
    if redis.call('exists', key) == 1 then
      redis.call('incrby', key, #over)
    end
  end
  return #over
end

-- putBack reclaims expired permits, n or a batch at most, and returns how many.
local function putBack(n)
  return reclaim(redis.call('zrangebyscore', held, 0, clock(), 'limit', 0, math.max(n, reapBatch)))
end

-- nextEnd returns the ms until the next lease ends, -1 if none does.
local function nextEnd()
  local first = redis.call('zrangebyscore', held, 0, '(' .. string.format('%.0f', never), 'withscores', 'limit', 0, 1)
  if not first[2] then
    return -1
  end
  return math.max(math.ceil(tonumber(first[2])) - clock(), 0)
end
