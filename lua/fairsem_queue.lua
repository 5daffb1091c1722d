-- Fragment: the queue of a fair semaphore. Besides sem_state.lua and permit_state.lua it needs the
-- locals queue, alive and grants, and
--
--   clients, suffix  what the channels of clients begin and end with
--   counts           whether the server counts all who listen there
--
--   queue   sorted set: entry -> since when it waits, in µs: its ticket
--   alive   sorted set: entry -> ms until which it counts as alive
--   grants  hash: entry -> ms of the lease that a grant gives it; only of those whose clients
--           listen, the others ask for themselves
--
-- An entry is '<client>:<id>', with the id of the first of the permits that it is for, as text.
-- Such an id has eight bytes of its client, four that number its request, two that say how many
-- permits there are, and two that number them from 0.
--
-- The permits go to the first of the queue that is alive, all or none, and then to the next. The
-- script that finds them free makes the first their owner, for a short lease, and tells its client:
--
--   "grant p <id> 0 <key>"
--
-- If nobody hears that, the client is gone, and with it its places. If it is there after all, it
-- gets them back when it asks, by their tickets. A grant that nobody uses ends with its lease.
local deadBatch, grantsAtOnce = 128, 64
local removed = 0
local gone = {} -- clients that do not hear of a grant: their waiters are dead

local function clientOf(entry)
  return string.sub(entry, 1, -34)
end

-- wanted tells how many permits an entry is for, 0 if it is damaged.
local function wanted(entry)
  return tonumber(string.sub(entry, -8, -5), 16) or 0
end

-- idsOf returns the ids of the permits that an entry is for, as bytes.
local function idsOf(entry)
  local start = string.gsub(string.sub(entry, -32, -5), '%x%x', function(digits)
    return string.char(tonumber(digits, 16))
  end)
  local ids = {}
  for i = 0, wanted(entry) - 1 do
    ids[i + 1] = start .. string.char(math.floor(i / 256), i % 256)
  end
  return ids
end

-- missing returns those of some ids that are not held. Those whose lease is over become available.
local function missing(ids)
  local absent, over = {}, {}
  for i, score in ipairs(redis.call('zmscore', held, unpack(ids))) do
    if score and lapsed(score) then
      over[#over + 1] = ids[i]
    end
    if not score or lapsed(score) then
      absent[#absent + 1] = ids[i]
    end
  end
  if #over > 0 then
    redis.call('zrem', held, unpack(over))
    if redis.call('exists', key) == 1 then
      redis.call('incrby', key, #over)
    end
  end
  return absent, #over
end

-- hold makes ids held for a lease, and takes those that are new from the number.
local function hold(ids, lease)
  local members, score = {}, ends(lease)
  for i, id in ipairs(ids) do
    members[2 * i - 1] = score
    members[2 * i] = id
  end
  local new = redis.call('zadd', held, 'gt', unpack(members))
  if new > 0 then
    redis.call('decrby', key, new)
  end
  local ttl = redis.call('pttl', key)
  if ttl > 0 then
    redis.call('pexpire', held, ttl)
  else
    redis.call('persist', held)
  end
end

-- drop takes entries out of the queue, and returns how many stood in it.
local function drop(entries)
  local n = redis.call('zrem', queue, unpack(entries))
  redis.call('zrem', alive, unpack(entries))
  redis.call('hdel', grants, unpack(entries))
  return n
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

-- front returns the first of the queue, after removing the dead, and for how many ms it counts as
-- alive; nil and 0 if there are too many dead for one call.
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

--@include listened

-- give makes the first of the queue the owner of its permits, and tells its client. It returns how
-- many have heard, -1 if the server refuses the message: the owner finds out when it asks.
local function give(head, lease)
  drop({head}) -- lets the rest pass on a server at its limit
  local ids = missing(idsOf(head))
  if #ids > 0 then
    hold(ids, lease)
  end
  local client, told = clientOf(head), 0
  if not counts or listened(clients .. client .. suffix) then
    told = tell(publish, clients .. client .. suffix, 'grant p ' .. string.sub(head, -32) .. ' 0 ' .. key)
  end
  if told == 0 and counts then
    gone[client] = true
    if #ids > 0 then
      redis.call('incrby', key, redis.call('zrem', held, unpack(ids)))
    end
  end
  return told
end

-- pass gives the permits that are free to those at the front of the queue. It stops at the first
-- for which there are too few, at the asker, and at one that has to ask for itself: that one is
-- told if always, or if anybody before it was removed. One that wants more than there are in all
-- would be in the way for ever: it is taken out, and comes back with its ticket when it asks. pass
-- returns how many permits are free, and what front does.
local function pass(free, always, asker)
  for _ = 1, grantsAtOnce do
    local head, left = front()
    if not head then
      return free, nil, left
    end
    local n = wanted(head)
    if n > free then
      putBack(n - free)
      free = look()
    end
    if n < 1 or n > free + redis.call('zcard', held) then
      drop({head})
    elseif n > free or head == asker then
      return free, head, left
    else
      local lease = redis.call('hget', grants, head)
      if not lease then
        if always or removed > 0 then
          announce(free)
        end
        return free, head, left
      end
      give(head, lease)
      free = look()
    end
  end
  announce(free) -- there is more to do for whoever asks
  local head, left = front()
  return free, head, left
end
