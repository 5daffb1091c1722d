-- Fragment: pass(asker, always) passes a lock that is free on to the first of the queue
-- of fair_queue.lua. Besides that fragment, reserve.lua and fair_give.lua it needs the local
-- tokens, the key of the fencing tokens.
--
-- A waiter whose note says so is granted the lock: it becomes the owner in the same
-- script, for a short lease, and its client is told. If nobody hears that, the client is
-- gone, and with it its places: the next one is granted the lock. A client that is there
-- after all gets its places back when it asks. Any other waiter is told that the lock is
-- free, and has to ask for it.
local grants = 8

-- tokenFor returns the token that goes with a grant, or false if the server refuses it.
local function tokenFor(wish)
  if wish == '0' then
    return '0'
  end
  local sound, token = pcall(reserve, tokens, 1, wish == '1t')
  return sound and token
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
    local client = clientOf(head)
    local token = round < grants and tokenFor(wish)
    if not token then
      return tell(publish, clients .. client .. suffix, 'ask 0 ' .. head .. ' ' .. key), head, left
    end
    local told = give(head, client, short, token)
    if told ~= 0 or not counts then
      return told, nil, tonumber(short), head
    end
    silent[client] = true
    pruned = pruned + 1
  end
end
