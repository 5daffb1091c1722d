-- Fragment: serve(free, waits) passes permits on that have become free. waits is a second channel: see
-- queue/strangers.lua.
--
-- If nobody is in the queue, or strangers have their turn, the channel gets a message for listeners that
-- do not use the queue. At that turn, waits gets one before it, so that clients of this library leave it to
-- strangers. serve returns how many subscribers of the channel received it, 0 if the permits went to the queue.
--@needs queue alive grants publish channel
--@include permit/entry

local function serve(free, waits)
  if redis.call('exists', queue) == 0 then
    redis.call('del', alive, grants) -- of a queue that is gone
    return offer(free)
  end
  --@include permit/queue
  if free > 0 and theirTurn(strangers(channel, waits), queue) then
    redis.call('hset', grants, '', string.format('%.0f', clock() + strangersPause))
    if redis.call('pttl', grants) < 0 then
      redis.call('pexpire', grants, '60000')
    end
    local head = front()
    if head then
      ask(head, strangersPause)
    end
    tell(publish, waits, '1')
    return offer(free)
  end
  local head, dead
  free, head, dead = pass(free, true)
  return head and 0 or dead and 0 or offer(free)
end
