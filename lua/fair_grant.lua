-- Fragment: pass(asker, always) passes a lock that is free on to the first of the queue
-- of fair_queue.lua. Besides that fragment and reserve.lua it needs the locals
--
--   tokens           key of the fencing tokens
--   clients, suffix  what the channels of clients begin and end with
--   counts           whether the server counts all who listen there
--
-- A waiter whose note says so is granted the lock: it becomes the owner in the same
-- script, for a short lease, and the channel of its client is told
--
--   "grant f <owner> <fencing token, or 0> <lock>"
--
-- If nobody hears that, the client is gone, and with it its places: the next one is
-- granted the lock. A client that is there after all gets its places back when it asks.
-- Any other waiter is told that the lock is free, and has to ask for it.
local grants = 8

local function channelOf(client)
  return clients .. client .. suffix
end

-- tokenFor returns the token that goes with a grant, or false if the server refuses it.
local function tokenFor(wish)
  if wish == '0' then
    return '0'
  end
  local sound, token = pcall(reserve, tokens, 1, wish == '1t')
  return sound and token
end

-- grant makes the first of the queue the owner, unless nobody hears of it. Returns how many
-- have heard, -1 if the server refuses the message: the owner finds out when it asks.
local function grant(waiter, short, token)
  local message = 'grant f ' .. waiter .. ' ' .. token .. ' ' .. key
  local told = tell(publish, channelOf(clientOf(waiter)), message)
  if told == 0 and counts then
    return 0
  end
  -- These writes need no memory, and let the others pass on a server that has none.
  forget(waiter)
  redis.call('lpop', queue)
  redis.call('hset', key, waiter, 1)
  redis.call('pexpire', key, short)
  return told
end

-- pass returns how many were told; the first of the queue, unless it was granted the
-- lock, and for how many ms it counts as alive, as front does; and who was granted the
-- lock. It stops at the asker, who may take the lock. Whoever is to ask is told only if
-- always, or if somebody before it was removed.
local function pass(asker, always)
  for round = 0, grants do
    local head, left, text = front()
    if not head or left == 0 or head == asker then
      return 0, head, left
    end
    local short, wish = wants(text)
    if not short then
      return (always or pruned > 0) and tell(publish, prefix .. head) or 0, head, left
    end
    local token = round < grants and tokenFor(wish)
    if not token then
      return tell(publish, channelOf(clientOf(head)), 'ask 0 ' .. head .. ' ' .. key), head, left
    end
    local told = grant(head, short, token)
    if told ~= 0 or not counts then
      return told, nil, tonumber(short), head
    end
    silent[clientOf(head)] = true
  end
end
