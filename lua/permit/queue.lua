-- Fragment: the queue of a semaphore whose permits have ids.
--
--   queue   sorted set: entry -> since when it waits, in µs: its ticket
--   alive   sorted set: entry -> ms until which it counts as alive
--   grants  hash: entry -> ms of the lease that a grant gives it; only for entries whose clients
--           listen, the others retry by themselves; '' -> ms until which strangers go first
--   stale   ms for which an entry counts as alive after a sign of life
--
-- The permits go to the first living entry of the queue, all or none, and then to the next. The
-- script that finds them free makes that entry their owner, for a short lease, and tells its
-- client:
--
--   "grant p <id> <ms after which the semaphore ends, 0 if that is not before the lease ends> <key>"
--
-- If nobody receives that, the client is gone (see shared/listened.lua). A grant that nobody uses
-- ends with its lease. A client whose entry is to retry by itself gets:
--
--   "ask 0 <id> <key>"
--
-- A script that serves the queue makes 64 grants at most, each with about 16 commands.
--@needs key held queue alive grants publish channel clients suffix counts
--@include permit/state
--@include shared/listened
--@include queue/strangers
local deadBatch, grantsAtOnce, strangersPause = 128, 64, 1
local removed = 0
local gone = {} -- clients that do not receive a grant: their waiters are dead

-- drop removes entries from the queue, and returns how many were in it.
local function drop(entries)
  local n = redis.call('zrem', queue, unpack(entries))
  redis.call('zrem', alive, unpack(entries))
  redis.call('hdel', grants, unpack(entries))
  return n
end

-- prolong lets the queue live on after a sign of life.
local function prolong(stale)
  for _, each in ipairs({queue, alive, grants}) do
    redis.call('pexpire', each, string.format('%.0f', 60000 + 10 * stale))
  end
end

local function clientOf(entry)
  return string.sub(entry, 1, -34)
end

-- front removes the dead entries at the head of the queue, and the queue if all are dead. It
-- returns the first entry and for how many ms it counts as alive; nothing if the queue is empty,
-- nil and 0 if there are too many dead entries for one call.
local function front()
  while true do
    local head = redis.call('zrange', queue, '0', '0')[1]
    if not head then
      redis.call('del', alive, grants)
      return
    end
    local left = tonumber(redis.call('zscore', alive, head) or 0) - clock()
    local silent = gone[clientOf(head)] and redis.call('hexists', grants, head) == 1
    if left > 0 and not silent then
      return head, left
    end
    if removed >= deadBatch then
      local latest = redis.call('zrange', alive, '-1', '-1', 'withscores')[2]
      if latest and tonumber(latest) > clock() then
        return nil, 0
      end
      redis.call('unlink', queue, alive, grants)
      return
    end
    local dead = redis.call('zrangebyscore', alive, '-inf', clock(), 'limit', '0', deadBatch)
    dead[#dead + 1] = head
    drop(dead)
    removed = removed + #dead
  end
end

-- give makes the first of the queue hold its permits, and notifies its client. It returns how many
-- permits are free then. If the server refuses the message, the owner learns of it when it retries.
local function give(head, lease, free)
  drop({head}) -- lets the rest run on a full server
  local ids, till = missing(idsOf(head)), nil
  if ids[1] then
    till, free = hold(ids, lease)
  else
    till = untilEnd(lease, redis.call('pttl', held))
  end
  local client, receivers = clientOf(head), 0
  local inbox = clients .. client .. suffix
  if counts ~= '1' or listened(inbox) then
    receivers = tell(publish, inbox, 'grant p ' .. string.sub(head, -32) .. ' ' .. (till or '0') .. ' ' .. key)
  end
  if receivers == 0 and counts == '1' then
    gone[client] = true
    if ids[1] then
      free = redis.call('incrby', key, redis.call('zrem', held, unpack(ids)))
    end
  end
  return free
end

-- ask tells the client of an entry to retry after some ms.
local function ask(entry, after)
  tell(publish, clients .. clientOf(entry) .. suffix, 'ask ' .. after .. ' ' .. string.sub(entry, -32) .. ' ' .. key)
end

-- strangersFirst returns for how many more ms strangers go first, nil if they do not.
local function strangersFirst()
  local left = tonumber(redis.call('hget', grants, '') or 0) - clock()
  return left > 0 and left <= strangersPause and left or nil
end

-- pass gives the free permits to the entries at the front of the queue, unless strangers go first.
-- It stops at the first entry for which there are too few, at the asker, and at an entry that
-- retries by itself: that one is asked if always is true, or if an entry ahead of it was removed.
-- An entry that wants more permits than there are in total would block the others while some are
-- free: then pass removes it, and it comes back with its ticket when it retries. pass returns how
-- many permits are free, and the results of front.
local function pass(free, always, asker)
  local most = strangersFirst() and 0 or grantsAtOnce
  for _ = 1, most do
    local head, left = front()
    if not head then
      return free, nil, left
    end
    local n = wanted(head)
    if n > free then
      free = free + putBack(n - free)
    end
    if n < 1 or free > 0 and n > free + redis.call('zcard', held) then
      drop({head})
    elseif n > free or head == asker then
      return free, head, left
    else
      local lease = redis.call('hget', grants, head)
      if not lease then
        if always or removed > 0 then
          ask(head, 0)
        end
        return free, head, left
      end
      free = give(head, lease, free)
    end
  end
  local head, left = front()
  if head and most > 0 then
    ask(head, 0) -- there may be more to grant
  end
  return free, head, left
end

-- serve passes permits on that have become free. If nobody is in the queue, or strangers have their
-- turn, the channel gets a message for listeners that do not use the queue. At that turn, waits
-- (see queue/strangers.lua) gets one before it, so that clients of this library leave it to
-- strangers. serve returns how many received it, 0 if the permits went to the queue.
local function serve(free, waits)
  if redis.call('exists', queue) == 0 then
    redis.call('del', alive, grants) -- of a queue that is gone
    return offer(free)
  end
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
  return (head or dead) and 0 or offer(free)
end
