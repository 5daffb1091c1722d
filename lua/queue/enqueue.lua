-- Fragment: enqueue(entry, since, poll) adds an entry to the queue of a lock, unless it is there, and extends
-- the life of the queue. The entry goes to the end or, if since is given, to its old place. enqueue returns the
-- score of the entry: the time at which it came. See queue/hand_over.lua for the format of an entry.
--
-- poll is the ms after which a poller polls again, '0' for one that polls no more, '' or nil for others. For a
-- poller enqueue also returns the ms after which it is to poll: see queue/poller.lua.
--
-- The queue lives for a minute after the last call, much longer than the pause after which a waiter retries.
--@needs queue
--@include shared/clock
local queueLife = '60000'

local function enqueue(entry, since, poll)
  if not since then
    clock()
    since = moment
  end
  if redis.call('zadd', queue, 'nx', since, entry) == 0 then
    since = redis.call('zscore', queue, entry)
  end
  redis.call('pexpire', queue, queueLife)
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
