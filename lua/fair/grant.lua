-- Fragment: pass(asker, always) passes a free lock on to the first waiter of the queue
-- of fair/queue.lua. tokens is the key of the fencing tokens.
--
-- A waiter whose note says so is granted the lock: the same script makes it the owner for
-- a short lease, and sends its client a message (see shared/listened.lua). Any other waiter gets a message
-- that the lock is free, and has to try to acquire it.
--@needs key tokens publish prefix clients suffix counts
--@include fair/queue
--@include fair/give
--@include shared/next_token
local grants = 8

-- tokenFor returns the token that belongs to a grant, or false if the server refuses it.
local function tokenFor(wanted)
  if wanted == '0' then
    return '0'
  end
  local sound, token = pcall(nextToken, tokens, wanted == '1t')
  return sound and token
end

-- pass returns how many subscribers received its message; the first of the queue, unless it was
-- granted the lock; for how many ms that one counts as alive, or the lease of the grant; and the
-- owner that was granted the lock. It stops at the asker, which may take the lock. A waiter that
-- has to retry gets a message only if always is true, or if a waiter ahead of it was removed.
local function pass(asker, always)
  for round = 0, grants do
    local head, left, text = front()
    if not head or left == 0 or head == asker then
      return 0, head, left
    end
    local short, wanted = wants(text)
    if not short then
      return (always or pruned > 0) and tell(publish, prefix .. head) or 0, head, left
    end
    local client = clientOf(head)
    local token = round < grants and tokenFor(wanted)
    if not token then
      return tell(publish, clients .. client .. suffix, 'ask 0 ' .. head .. ' ' .. key), head, left
    end
    local receivers = give(head, client, short, token)
    if receivers ~= 0 or not counts then
      return receivers, nil, tonumber(short), head
    end
    silent[client] = true
    pruned = pruned + 1
  end
end
