-- Fragment: an entry in the queue of a semaphore whose permits have ids, and its permits: see
-- permit/queue.lua. Scripts that usually find no queue include only this at first: each function that is
-- defined costs time.
--@needs key held queue alive grants
--@include permit/state

-- wanted returns how many permits an entry wants, 0 if it is damaged.
local function wanted(entry)
  return tonumber(string.sub(entry, -8, -5), 16) or 0
end

-- startOf returns the bytes with which the ids of an entry begin.
local function startOf(entry)
  local bytes = {}
  for i = 1, 14 do
    bytes[i] = tonumber(string.sub(entry, 2 * i - 34, 2 * i - 33), 16) or 0
  end
  return string.char(unpack(bytes))
end

-- idsOf returns the ids of the permits that an entry wants, as bytes. start is what they begin with, if it is known.
local function idsOf(entry, start)
  start = start or startOf(entry)
  local ids = {}
  for i = 0, wanted(entry) - 1 do
    ids[i + 1] = start .. string.char(math.floor(i / 256), i % 256)
  end
  return ids
end

-- missing returns the ids among some that are not held, and how many leases were over: their permits
-- become available.
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

-- hold makes ids held for a lease, and subtracts the new ones from the number of free permits. It returns what
-- untilEnd does, and that number, nil if no id was new.
local function hold(ids, lease)
  local members, score = {}, ends(lease)
  for i, id in ipairs(ids) do
    members[2 * i - 1] = score
    members[2 * i] = id
  end
  local new, left = redis.call('zadd', held, 'gt', unpack(members)), nil
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

-- drop removes entries from the queue, and returns how many were in it.
local function drop(entries)
  local n = redis.call('zrem', queue, unpack(entries))
  redis.call('zrem', alive, unpack(entries))
  redis.call('hdel', grants, unpack(entries))
  return n
end
