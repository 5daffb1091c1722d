-- Fragment: pollers in a queue: waiters that receive no messages.
--
-- Besides its entry a poller has a second member in the queue, its poll time: '~<owner>', or '~<operation>'
-- for a semaphore. The score, less pollTimes, says when it polls again, in µs. So poll times come after all
-- entries.
--
-- A poller that is about to poll is served. Otherwise others go first, and it keeps its place. It is about to
-- poll if it does within 5 ms and its share of a sixteenth of its wait, a tenth of a second at most.
-- A poller that is late by a second is gone.
--
-- Cost, besides the time: 4 commands for pollsAgain, at most 2 for pollsIn. A poller that is passed over
-- costs a release 7.
--@needs queue
--@include shared/clock
local pollTimes, late = 2 ^ 52, 1000000

-- margin returns how long others wait for a poller that came at since, in µs.
local function margin(since)
  clock()
  return math.min(5000 + math.max(0, micros - since) / 8 / redis.call('zcard', queue), 100000)
end

-- pollsAgain notes when a poller polls again: after pause ms, or sooner if it is the first. It returns that pause
-- in ms. It removes a few poll times of pollers that are gone.
local function pollsAgain(member, entry, since, pause)
  local soon = margin(since)
  local gone = redis.call('zrange', queue, string.format('%.0f', pollTimes),
    string.format('%.0f', pollTimes + micros - late), 'byscore', 'limit', '0', '8')
  if #gone > 0 then
    redis.call('zrem', queue, unpack(gone))
  end
  pause = pause * 1000
  if redis.call('zrange', queue, '0', '0')[1] == entry then
    pause = math.min(pause, soon)
  end
  redis.call('zadd', queue, string.format('%.0f', pollTimes + micros + pause), member)
  return math.ceil(pause / 1000)
end

-- pollsIn returns in how many ms a poller polls that is about to; false for another poller, nil for a waiter that
-- listens or is gone.
local function pollsIn(member, since)
  local at = redis.call('zscore', queue, member)
  if not at then
    return nil
  end
  local soon = margin(since)
  local left = at - pollTimes - micros
  if left < -late then
    return nil
  end
  return left <= soon and math.max(0, math.ceil(left / 1000))
end
