-- Fragment: the queue of a semaphore whose permits have ids.
--
--   queue   sorted set: entry -> since when it waits, in µs: its ticket
--   alive   sorted set: entry -> ms until which it counts as alive
--   grants  hash: entry -> ms of the lease that a grant gives it; only for entries whose clients
--           listen, the others retry by themselves; '' -> ms until which strangers go first
--
-- An entry is '<client>:<id>', with the id of the first permit that it wants, as text.
-- Such an id has eight bytes of its client, four for the number of its request, two for the number
-- of permits, and two that number them from 0.
--
-- The permits go to the first living entry of the queue, all or none, and then to the next. The
-- script that finds them free makes that entry their owner, for a short lease, and sends to its client:
--
--   "grant p <id> <ms after which the semaphore ends, 0 if that is not before the lease ends> <key>"
--
-- If nobody receives that, the client is gone (see shared/listened.lua). A grant that nobody uses ends with its
-- lease. A client whose entry is to retry by itself gets:
--
--   "ask 0 <id> <key>"
--@needs key held queue alive grants publish clients suffix counts
--@include permit/entry
--@include shared/listened
--@include queue/strangers
local deadBatch, grantsAtOnce, strangersPause = 128, 64, 1
local removed = 0
local gone = {} -- clients that do not receive a grant: their waiters are dead

local function clientOf(entry)
  return string.sub(entry, 1, -34)
end

-- over removes the queue if nobody in it is alive.
local function over()
  local latest = redis.call('zrange', alive, '-1', '-1')[1]
  if latest and tonumber(redis.call('zscore', alive, latest)) > clock() then
    return false
  end
  redis.call('unlink', queue, alive, grants)
  return true
end

-- front removes the dead entries at the head of the queue. It returns the first entry and for how many
-- ms it counts as alive; nothing if the queue is empty, nil and 0 if there are too many dead entries
-- for one call.
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
      if over() then
        return
      end
      return nil, 0
    end
    local dead = redis.call('zrangebyscore', alive, '-inf', clock(), 'limit', '0', deadBatch)
    dead[#dead + 1] = head
    drop(dead)
    removed = removed + #dead
  end
end

-- give makes the first of the queue hold its permits, and notifies its client. It returns how many of the free
-- permits are left then. If the server refuses the message, the owner learns of the grant when it retries.
local function give(head, lease, free)
  drop({head}) -- lets the rest run on a server that is out of memory
  local ids, till = missing(idsOf(head)), nil
  if #ids > 0 then
    till, free = hold(ids, lease)
  else
    till = untilEnd(lease, redis.call('pttl', held))
  end
  local client, receivers = clientOf(head), 0
  if not counts or listened(clients .. client .. suffix) then
    local message = 'grant p ' .. string.sub(head, -32) .. ' ' .. (till or '0') .. ' ' .. key
    receivers = tell(publish, clients .. client .. suffix, message)
  end
  if receivers == 0 and counts then
    gone[client] = true
    if #ids > 0 then
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

-- pass gives the free permits to the entries at the front of the queue, unless strangers go first. It
-- stops at the first entry for which there are too few, at the asker, and at an entry that retries by
-- itself: that one is asked if always is true, or if an entry ahead of it was removed. An entry that wants
-- more permits than there are in total would block the others while some are free: then pass removes it,
-- and it comes back with its ticket when it retries. pass returns how many permits are free, and the
-- results of front.
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
