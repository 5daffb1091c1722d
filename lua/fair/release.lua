-- Give back a fair lock, in part or in whole; also the undo of an acquisition, the way out of the queue, and the
-- forced release.
--
--@keys key queue deadlines notes tokens
--@args owner count me publish channel raise queued stale clients suffix counts redissonWait='0' keepFor='0'
--
--   key        lock hash; its arguments are those of lock/release.lua: owner, count, me, raise
--   queue, deadlines, notes  see fair/notes.lua
--   tokens     fencing counter
--   channel    of the lock. Each waiter has a channel of its own, which begins with that. A forced release
--              also sends a message to this channel, because it does not know the kind of the lock
--   queued     '1' if the owner may be in the queue
--   stale      ms for which a waiter counts as alive after a sign of life
--   redissonWait  ms for which a waiter of Redisson keeps its place once it could acquire the lock
--   keepFor    with a count of '0' the ms for which the lock stays taken: see lock/stay_taken.lua
--
-- Reply   nil: this client has no part in the lock; if the owner was in the queue, it has
--         left it
--         status HELD: the owner still holds the lock
--         integer: the lock is free, granted to a waiter, or stays taken; how many subscribers
--         received the message, -1 if the server refused it
--
-- If the lock is free afterwards, it is passed on to the first of the queue (see fair/grant.lua). If it stays
-- taken, the first is told to retry: a client of this library when the lock is free, a waiter of Redisson at once.
-- The deadline of that waiter, which depends on the lease that the lock had, is lowered to what it would be now.
--
-- Cost: 4 commands for the last release if nobody waits, 12 if a waiter is granted the lock or
-- the lock stays taken, 6 if it has to retry, 3 more for a waiter of Redisson; O(log n) in the waiters. An owner
-- that leaves the queue is removed if it is among the 256 at either end, and otherwise marked for removal when it
-- gets there; at most 64 dead waiters at each end are removed with it. It leaves the queue even if the key now
-- holds another kind of object, which is an error. Works on a server that is out of memory. Idempotent: counts are
-- absolute; on a lock of somebody else it does nothing, and on a free lock it only passes the lock on.
count, raise, stale, counts = tonumber(count), tonumber(raise), tonumber(stale), counts == '1'
local prefix = channel .. ':'
--@include lock/leave
--@include shared/clock
--@include fair/give

-- first passes the lock on if nobody waits, or if the first of the queue is of this library, alive,
-- and wants no token. It returns how many subscribers received the message, or nil if there is more
-- to do. Most releases need nothing else, and define no other functions.
local function first()
  local head = redis.call('lindex', queue, 0)
  if not head then
    redis.call('del', deadlines, notes) -- of a deleted queue
    return 0
  end
  local text = redis.call('hget', notes, head) or ''
  local lease, life = string.match(text, '^%d+:(%d+):0:(%d+)$')
  life = tonumber(life or string.match(text, '^%d+:(%d+)$'))
  if not life then
    return
  end
  clock()
  if life <= now then
    return
  elseif not lease then
    return tell(publish, prefix .. head)
  end
  local receivers = give(head, string.match(head, '^(.*):') or head, lease, '0')
  return (receivers ~= 0 or not counts) and receivers or nil
end

if queued == '1' then
  --@include fair/queue

  -- withdraw removes the owner from the queue, or marks it for removal.
  local function withdraw()
    local text = redis.call('hget', notes, owner)
    local score = redis.call('zscore', deadlines, owner)
    if not text and not score then
      return
    end
    local side = within(owner)
    if side then
      redis.call('lrem', queue, side, owner)
      return forget(owner)
    end
    if not score or redis.call('llen', queue) <= reach then
      return forget(owner) -- it had no place
    end
    redis.call('hdel', notes, '') -- lets the rest run on a server that is out of memory
    redis.call('hset', notes, owner, string.format('%.0f:0', since(text) or 0))
    keep()
    -- This deadline lets the owner die now. It is not in the past, and still contains what
    -- Redisson will subtract, because Redisson computes the deadline of the next waiter from it.
    redis.call('zadd', deadlines, score - math.max(expiry(owner, text) - now, 0), owner)
  end

  local function quit()
    clock()
    withdraw()
    trim()
    if redis.call('exists', queue) == 0 then
      redis.call('del', deadlines, notes) -- they would keep owners that Redisson has removed from joining again
    end
  end

  pcall(quit) -- in a damaged queue it has no place anyway
end
if keepFor ~= '0' then
  --@include lock/stay_taken
  local function tellFirst()
    local head = redis.call('lindex', queue, 0)
    if not head then
      return 0
    end
    if not redis.call('hget', notes, head) then
      clock()
      redis.call('zadd', deadlines, 'xx', 'lt', string.format('%.0f', now + kept + redissonWait), head)
    end
    local client = string.match(head, '^(.*):') or head
    tell(publish, clients .. client .. suffix, 'ask ' .. kept + 1 .. ' ' .. head .. ' ' .. key)
    return tell(publish, prefix .. head)
  end
  local sound, receivers = pcall(tellFirst)
  return sound and receivers or 0
end
local left = leave(count, raise)
if left == 'HELD' then
  return redis.status_reply(left)
end
if not left then
  --@include shared/only_master
  if redis.call('exists', key) == 1 then
    return false
  end
end
-- A queue that is damaged must not turn a lock that is released into an error.
local sound, receivers = pcall(first)
if not sound then
  receivers = 0
elseif not receivers then
  --@include fair/grant
  local head, _, granted
  sound, receivers, head, _, granted = pcall(pass, nil, true)
  if sound and not head and not granted then
    redis.call('del', deadlines, notes)
  end
  receivers = sound and receivers or 0
end
if count < 0 then
  receivers = math.max(receivers, 0) + math.max(tell(publish, channel), 0)
end
return left and receivers
