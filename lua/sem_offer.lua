-- Fragment: offer(free, short) lets others have the free permits. In addition to sem_serve.lua it needs the local
-- waits: a second channel, on which each client of this library listens that listens on channel.
--
-- Strangers listen on channel, Redisson above all, and know no queue. If nobody is in the queue, they and all
-- others get a message. Otherwise each stranger has its turn as often as one in the queue, by the microsecond
-- in which the script runs: then one permit is kept for strangers for a moment. If short is true, they have
-- no turn. They also get a message if permits are left when the queue has been served, because they do not poll.
-- offer returns how many strangers listen, 0 if nobody is in the queue.
--@include sem_serve
local strangersPause = 3

-- tellStrangers announces permits. Clients of this library ignore a message on channel after one on waits.
local function tellStrangers(n)
  tell(publish, waits, '1')
  announce(n)
end

local function offer(free, short)
  if free <= 0 then
    return 0
  end
  local first = redis.call('zrange', queue, '0', '0')[1]
  if not first then
    announce(free)
    return 0
  end
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel, waits)
  local strangers = math.max(0, (tonumber(count[2]) or 0) - (tonumber(count[4]) or 0))
  local turn = strangers > 0 and not short
    and redis.call('time')[2] % (redis.call('zcard', queue) + strangers) < strangers
  if turn then
    keep('strangers 1', math.min(strangersPause, keeping))
    tellStrangers(free)
    while first and not reach(first, 'ask', strangersPause) and whenPolls(first) == nil do
      redis.call('zrem', queue, first)
      first = redis.call('zrange', queue, '0', '0')[1]
    end
  end
  local _, spare = serve(free, nil, first)
  if spare > 0 and not turn then
    tellStrangers(spare)
  end
  return strangers
end
