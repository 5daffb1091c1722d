-- Fragment: enqueue(entry, poll) adds an entry (see queue/hand_over.lua) to the end of the queue of a lock,
-- unless it is there, and lets the queue live for another minute, much longer than the pause after which a
-- waiter retries. It returns the score of the entry.
--
-- poll is the ms after which a poller polls again, '0' for one that polls no more, '' or nil for others. For a
-- poller enqueue also returns the ms after which it is to poll: see queue/poller.lua.
--@needs queue
--@include shared/clock
local function enqueue(entry, poll)
  clock()
  local since = moment
  if redis.call('zadd', queue, 'nx', since, entry) == 0 then
    since = redis.call('zscore', queue, entry)
  end
  redis.call('pexpire', queue, 60000)
  if (poll or '') == '' then
    return since
  end
  local member = '~' .. string.match(entry, '^%S+')
  if poll == '0' then
    redis.call('zrem', queue, member)
    return since
  end
  --@include queue/poller
  return since, pollsAgain(member, entry, since, poll)
end
