-- Fragment: handOver(kind, key, give, next) gives a lock that has become free to the
-- first in the queue, behind which it puts the entry next first, or tells strangers that
-- it is free. It needs what grant.lua needs, and channel, on which Redisson listens.
--
-- Strangers are Redisson and whoever else waits on that channel. They know nothing of the
-- queue: when it is their turn, the lock stays free, they are told, and the client of the
-- first in the queue that listens is told to ask a moment later: 'ask <ms> <owner> <key>'.
--
-- It returns what a release replies: an array of the new owner and its first token, or
-- how many subscribers were told that the lock is free. It never fails: a lock that cannot
-- be handed over is free.
--@include tell
--@include grant

-- mayGoFirst tells whether strangers listen, and it is their turn: as often as one of
-- the clients in the queue, by the microsecond in which the script runs.
local function mayGoFirst()
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  if type(count) ~= 'table' or count['err'] or count[2] == 0 then
    return false
  end
  return redis.call('time')[2] % redis.call('zcard', queue) < count[2]
end

-- askFirst tells the client of the first in the queue to ask in so many ms. One that nobody
-- hears is dropped, eight at most.
local function askFirst(key, ms)
  for _ = 1, 8 do
    local entry = redis.call('zrange', queue, 0, 0)[1]
    if not entry then
      return
    end
    local to = string.match(entry, '^(%S+:%d+) ')
    if to and (tell(publish, channelOf(to), 'ask ' .. ms .. ' ' .. to .. ' ' .. key) ~= 0 or counted ~= '1') then
      return
    end
    redis.call('zrem', queue, entry)
  end
end

-- toFirst is handOver without a message if nobody in the queue can have the lock.
local function toFirst(kind, key, give, next)
  if not queue then
    return nil
  end
  if next ~= '' then
    enqueue(next)
  end
  if redis.call('exists', queue) == 0 then
    return nil
  end
  if mayGoFirst() then
    return askFirst(key, 2)
  end
  local to, token = grant(kind, key, give, next)
  return to and {to, token}
end

local function handOver(kind, key, give, next)
  local worked, granted = pcall(toFirst, kind, key, give, next)
  return worked and granted or tell(publish, channel)
end
