-- Acquire permits with ids (Redisson RPermitExpirableSemaphore), all or none, or wait in a queue.
--
--@keys key held queue alive grants kind mark=nil
--@args entry lease stale ticket short unsetToo publish channel clients suffix counts
--
--   mark      of an acquisition that was given up, for leases without an end only
--   stale     '' for a single attempt
--   ticket    of an earlier call, or ''
--   short     ms of the lease that a grant gives the entry, '' if it retries by itself
--   unsetToo  '1' if it also waits until somebody sets the permits
--
-- Reply   nil: acquired
--         string: acquired; ms after which the semaphore ends, if that is before the lease ends
--         array: refused, single attempt; ms after which the next lease ends, -1 if none does; how
--         many permits are available, and how many there are in total
--         array: refused; ms after which to retry, -1 if that is not known; the same; the ticket;
--         0 in the queue, 1 in the queue and nobody has set the permits, 2 not in the queue: it wants
--         more than there are in total, and others can have what is free
--         error LATCHKEY_UNSET: see semaphore/state.lua
--         error LATCHKEY_PAST: the acquisition was given up; nothing was acquired
--
-- Free permits go to the front of the queue first, not to the caller.
--
-- Cost: 9 commands if nobody waits, about 20 to join the queue, and the grants; O(log w + n log p)
-- for n permits among p that are held and w that wait. An entry that is in the queue may retry on a
-- full server. Idempotent, except that the lease begins again: ids are used once, and an entry is
-- queued once.
stale = tonumber(stale)
--@include permit/state

local free, wrong = look()
if wrong then
  return wrong
end
local ids, absent, back, n, empty = idsOf(entry), nil, nil, nil, nil
if free then
  absent, back = missing(ids)
  n, free = #absent, free + back
  if n > 0 and mark and redis.call('exists', mark) == 1 then
    return redis.error_reply('LATCHKEY_PAST the acquisition was given up')
  end
  empty = redis.call('exists', queue) == 0
  if empty and free < n then
    local more = putBack(n - free)
    back, free = back + more, free + more
  end
  if n == 0 or empty and free >= n then
    if n == 0 then
      redis.call('zrem', held, '') -- all are granted already: lets the rest run on a server without memory
    end
    return (hold(ids, lease))
  end
end

--@include permit/queue

-- place returns the ticket of the entry as text, and whether it is in the queue. The ticket is the
-- one that its client knows, because a late copy may have put the entry back with another. A new
-- one is later than the last in the queue, even if the clock of the server was set back.
local function place()
  local there = redis.call('zscore', queue, entry)
  local since = ticket ~= '' and ticket or there
  if not since then
    clock()
    local last = redis.call('zrange', queue, '-1', '-1', 'withscores')[2]
    since = math.max(micros, (tonumber(last) or -1) + 1)
  end
  return string.format('%.0f', tonumber(since)), there
end

-- join puts the entry into the queue, or finds it there, and keeps it alive. It returns the ticket.
local function join()
  local since, there = place()
  if there then
    redis.call('zrem', alive, '') -- lets the rest run on a full server
  end
  redis.call('zadd', alive, string.format('%.0f', clock() + stale), entry)
  if short ~= '' then
    redis.call('hset', grants, entry, short)
  else
    redis.call('hdel', grants, entry)
  end
  redis.call('zadd', queue, since, entry) -- last, so that it is never without an expiry
  prolong(stale)
  return since
end

if not free then
  if stale and unsetToo == '1' then
    return {-1, 0, 0, join(), 1}
  end
  return unset()
end
local total = free + redis.call('zcard', held)
local joined = stale and (n <= total or free <= 0) and join()
local head, left, pause
if stale or not empty then
  free, head, left = pass(free, back > 0, entry)
  pause = strangersFirst()
else
  redis.call('del', alive, grants) -- of a queue that is gone
end
local first = head == entry or not head and not left
if first and not head and not empty and free < n then
  free = free + putBack(n - free)
end
if first and free >= n and not pause then
  drop({entry})
  local taken = hold(ids, lease)
  pass(free - n, true)
  return taken
end
if not stale then
  if not empty then
    --@include shared/only_master
  end
  if back > 0 and not head and not left then
    offer(free) -- others may want fewer
  end
  return {nextEnd(), free, total}
elseif n > total and free > 0 then
  local since = joined or place()
  drop({entry})
  return {-1, free, total, since, 2}
elseif n > total then -- pass may have removed it
  joined = join()
end
return {pause or head == entry and nextEnd() or left or 0, free, total, joined, 0}
