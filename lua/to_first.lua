-- Fragment: toFirst(kind, key, give, next, full, waits) gives a lock that has become free to the
-- first in the queue, behind which it puts the entry next first, unless that is ''. If next is the first, it
-- has the lock for the lease full. It needs tell.lua, what grant.lua needs, and channel, on which Redisson listens.
--
-- Strangers are Redisson and whoever else waits on that channel. They know nothing of the
-- queue: when it is their turn, the lock stays free, and the client of the first in the queue that
-- listens is told to ask a moment later: 'ask <ms> <owner> <key>'. waits is a channel on which
-- all clients of this library listen that listen to that of the lock, or nil if only those listen
-- there that are in the queue.
--
-- It returns an array of the new owner and its first token, or nil if the lock stays free, of which
-- nobody has been told. What it does not need is not even defined.
--
-- The caller may have popped the first of the queue already: first is that entry and its score, or nil.
local function toFirst(kind, key, give, next, full, waits, first)
  if next ~= '' then
    --@include enqueue
    enqueue(next)
  end
  first = first or redis.call('zpopmin', queue)
  local entry, since = first[1], first[2]
  if not entry then
    return nil
  end
  -- Strangers that listen have their turn as often as one of the clients in the queue, by the
  -- microsecond in which the script runs. Without waits those clients listen too, as a rule, beside
  -- strangers. They are told to wait a moment, by a message that Redisson ignores. The same question
  -- tells whether the client of the first listens.
  local numsub = publish == 'PUBLISH' and 'numsub' or 'shardnumsub'
  local inbox = prefix .. (string.match(entry, '^(%S+):%d+ ') or '') .. suffix
  local count = waits and redis.pcall('pubsub', numsub, channel, inbox, waits) or redis.pcall('pubsub', numsub, channel, inbox)
  local listen = (count[2] or 0) - (count[6] or 0)
  local ours = listen > 0 and redis.call('zcard', queue) + 1
  if ours and redis.call('time')[2] % ours < math.max(1, waits and listen or listen - ours) then
    redis.call('zadd', queue, since, entry)
    --@include ask_first
    askFirst(key, 2)
    tell(publish, channel, '2')
    return nil
  end
  --@include grant
  local to, token = grant(kind, key, give, next, full, first, entry == next or counted ~= '1' or count[4] ~= 0)
  return to and {to, token}
end
