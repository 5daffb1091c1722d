-- Fragment: strangers, which listen on a channel and know no queue: Redisson above all.
--@needs publish

-- strangers returns how many strangers listen on a channel. waits is a second channel, on which each client of this
-- library listens that listens on the first.
local function strangers(channel, waits)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel, waits)
  return math.max(0, (tonumber(count[2]) or 0) - (tonumber(count[4]) or 0))
end

-- theirTurn reports whether it is the turn of n strangers. Each has its turn as often as a waiter in the queue, by
-- the microsecond in which the script runs. The queue may also have poll times: see queue/poller.lua.
local function theirTurn(n, queue)
  return n > 0 and redis.call('time')[2] % (redis.call('zcount', queue, '-inf', '(4503599627370496') + n) < n
end
