-- Fragment: offer(free, short) lets others have the free permits.
--
-- If nobody is in the queue, strangers and all others that listen on channel get a message. Otherwise one
-- permit is kept for strangers for a moment if it is their turn. If short is true, they have no turn. They
-- also get a message if permits are left when the queue has been served, because they do not poll. offer
-- returns how many strangers listen, 0 if nobody is in the queue.
--@needs queue keeping publish channel waits
--@include semaphore/state

local function offer(free, short)
  if free <= 0 then
    return 0
  end
  local first = redis.call('zrange', queue, '0', '0')[1]
  if not first then
    announce(free)
    return 0
  end
  --@include semaphore/serve
  --@include queue/strangers
  local strangersPause = 1

  -- tellStrangers announces permits. Clients of this library ignore a message on channel after one on waits.
  local function tellStrangers(permits)
    tell(publish, waits, '1')
    announce(permits)
  end

  local n = strangers(channel, waits)
  local turn = not short and theirTurn(n, queue)
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
  return n
end
