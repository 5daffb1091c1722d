-- Fragment: toFirst(kind, key, give, next, full, waits, head) puts the entry next at the end of the queue,
-- unless it is '', and gives a lock that has become free to the first of the queue. If next is the
-- first, it holds the lock for the lease full. toFirst needs tell.lua, the locals of grant.lua, and
-- channel, on which Redisson listens.
--
-- Strangers are Redisson and all others that wait on that channel and not in the queue. When it is
-- their turn, the lock stays free, and the client of the first listening waiter in the queue receives
-- a message to retry after a short pause: 'ask <ms> <owner> <key>'. waits is a second channel: each
-- client of this library that listens on channel also listens there. It is nil if only the clients in
-- the queue listen on channel.
--
-- It returns an array of the new owner and its first token, or nil if the lock stays free and nobody
-- was notified of that. head is the first entry of the queue, if the caller has read it.
local function toFirst(kind, key, give, next, full, waits, head)
  if next ~= '' then
    --@include enqueue
    enqueue(next)
  end
  head = head or redis.call('zrange', queue, 0, 0)[1]
  if not head then
    return nil
  end
  -- Each stranger that listens has its turn as often as a client in the queue, by the microsecond in
  -- which the script runs. Without waits, the clients in the queue usually listen on the channel too.
  -- They are told to pause, by a message that Redisson ignores. The same command tells whether the
  -- client of the first listens.
  local numsub = publish == 'PUBLISH' and 'numsub' or 'shardnumsub'
  local inbox = prefix .. (string.match(head, '^(%S+):%d+ ') or '') .. suffix
  local count = waits and redis.pcall('pubsub', numsub, channel, inbox, waits) or redis.pcall('pubsub', numsub, channel, inbox)
  local listen = (count[2] or 0) - (count[6] or 0)
  local ours = listen > 0 and redis.call('zcard', queue)
  if ours and redis.call('time')[2] % ours < math.max(1, waits and listen or listen - ours) then
    --@include ask_first
    askFirst(key, 2)
    tell(publish, channel, '2')
    return nil
  end
  --@include grant
  local to, token = grant(kind, key, give, next, full, head == next or counted ~= '1' or count[4] ~= 0)
  return to and {to, token}
end
