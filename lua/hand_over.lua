-- Fragment: handOver(kind, key, give, next, full) gives a lock that has become free to the
-- first in the queue, behind which it puts the entry next first, or tells strangers that
-- it is free. If next is the first, it has the lock for the lease full. It needs what grant.lua needs, and channel, on which Redisson listens.
--
-- Strangers are Redisson and whoever else waits on that channel. They know nothing of the
-- queue: when it is their turn, the lock stays free, they are told, and the client of the
-- first in the queue that listens is told to ask a moment later: 'ask <ms> <owner> <key>'.
--
-- It returns what a release replies: an array of the new owner and its first token, or
-- how many subscribers were told that the lock is free. It never fails: a lock that cannot
-- be handed over is free.
--@include tell

-- toFirst is handOver without a message if nobody in the queue can have the lock. What it does
-- not need is not even defined.
local function toFirst(kind, key, give, next, full)
  if not queue or next == '' and redis.call('exists', queue) == 0 then
    return nil
  end
  if next ~= '' then
    --@include enqueue
    enqueue(next)
  end
  -- Strangers that listen have their turn as often as one of the clients in the queue, by the
  -- microsecond in which the script runs. Those clients listen too, as a rule, beside strangers:
  -- they are told to wait a moment, by a message that Redisson ignores.
  local listen = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)[2] or 0
  local ours = listen > 0 and redis.call('zcard', queue)
  if ours and redis.call('time')[2] % ours < math.max(1, listen - ours) then
    --@include ask_first
    askFirst(key, 2)
    tell(publish, channel, '2')
    return nil
  end
  --@include grant
  local to, token = grant(kind, key, give, next, full)
  return to and {to, token}
end

local function handOver(kind, key, give, next, full)
  local worked, granted = pcall(toFirst, kind, key, give, next, full)
  return worked and granted or tell(publish, channel)
end
