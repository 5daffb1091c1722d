-- Fragment: a semaphore whose permits have ids and leases.
--
--   key   string: number of free permits, may be negative; Redisson's
--   held  sorted set: id, as bytes -> ms at which its lease ends, or the number that means never;
--         Redisson's
--
-- The total is the number plus the size of the set. Permits whose lease is over count as available.
-- A script that needs them puts them back in batches.
--
-- A lease is in ms, '' without an end. The permits of one acquisition have an entry,
-- '<client>:<id>', with the id of the first of them, as text. An id has eight bytes of its client,
-- four for the number of its request, two for the number of permits, and two that number them.
--@needs key held
--@include semaphore/state
--@include shared/clock
mine = 'permit semaphore'
local never = 922337203685477
local reapBatch = 64

-- ends is the score of a lease that begins now.
local function ends(lease)
  return string.format('%.0f', lease == '' and never or clock() + lease)
end

-- untilEnd returns the ms, as text, after which a semaphore that lives for ttl ms ends, if that is
-- before the end of a lease that begins now; else false.
local function untilEnd(lease, ttl)
  return ttl >= 0 and (lease == '' or ttl < tonumber(lease)) and string.format('%.0f', math.max(ttl, 1))
end

-- lapsed reports whether the lease with a score is over.
local function lapsed(score)
  return tonumber(score) >= 0 and tonumber(score) <= clock()
end

-- offer announces (semaphore/state.lua) the free permits and those that have expired.
local function offer(free)
  return announce(free + redis.call('zcount', held, 0, clock()))
end

-- reclaim makes the permits available that some ids had, and returns how many they are. It does not
-- create the number if nobody has set the permits.
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
  local first = redis.call('zrangebyscore', held, 0, '(' .. ends(''), 'withscores', 'limit', 0, 1)[2]
  return first and math.max(math.ceil(tonumber(first)) - clock(), 0) or -1
end

-- wanted returns how many permits an entry wants, 0 if it is damaged.
local function wanted(entry)
  return tonumber(string.sub(entry, -8, -5), 16) or 0
end

-- idsOf returns the ids of the permits that an entry wants.
local function idsOf(entry)
  local start, ids = {}, {}
  for i = 1, 14 do
    start[i] = tonumber(string.sub(entry, 2 * i - 34, 2 * i - 33), 16) or 0
  end
  start = string.char(unpack(start))
  for i = 0, wanted(entry) - 1 do
    ids[i + 1] = start .. string.char(math.floor(i / 256), i % 256)
  end
  return ids
end

-- missing returns the ids among some that are not held, and how many leases were over, now
-- reclaimed.
local function missing(ids)
  local absent, over = {}, {}
  for i, score in ipairs(redis.call('zmscore', held, unpack(ids))) do
    if score and lapsed(score) then
      over[#over + 1] = ids[i]
    end
    if not score or lapsed(score) then
      absent[#absent + 1] = ids[i]
    end
  end
  return absent, reclaim(over)
end

-- hold makes ids held for a lease, and subtracts the new ones from the free permits. It returns
-- what untilEnd does, and how many are free then, nil if no id was new.
local function hold(ids, lease)
  local members, score, left = {}, ends(lease), nil
  for i, id in ipairs(ids) do
    members[2 * i - 1], members[2 * i] = score, id
  end
  local new = redis.call('zadd', held, 'gt', unpack(members))
  if new > 0 then
    left = redis.call('incrby', key, -new) -- the command that gives them back
  end
  local ttl = redis.call('pttl', key)
  if ttl >= 0 then -- 0 in its last millisecond
    redis.call('pexpire', held, math.max(ttl, 1))
  else
    redis.call('persist', held)
  end
  return untilEnd(lease, ttl), left
end
