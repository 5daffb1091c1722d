-- Say that waiters of fair semaphores are alive, many at once, and look how they stand.
--
-- KEYS[5i-4] permits, KEYS[5i-3] ids (see permit_state.lua), KEYS[5i-2] queue, KEYS[5i-1] alive,
--         KEYS[5i] grants (see fairsem_queue.lua)
-- ARGV[1] ms for which the waiters then count as alive
-- ARGV[2] PUBLISH or SPUBLISH
-- ARGV[3] what the channels of clients end with
-- ARGV[4] '1' if the server counts all who listen there
-- ARGV[5] on, for each semaphore: its channel, what the channels of clients begin with, the number
--         of its entries in this call, and these
--
-- Reply   array, for each entry: 1 it has its place; 0 it has to ask: it has none, it has been
--         granted its permits, or there are enough for it, the first, which asks for itself;
--         3 it has its place, and nobody has set any
--
-- No place is given. What is free goes to the front of the queue.
--
-- Cost: about 12 commands for each semaphore, about 16 more for each waiter that is granted its
-- permits, 64 at most, and 2 for each entry; O(log w) each. Works on a server that is out of memory.
-- Idempotent.
local stale, publish, suffix, counts = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4] == '1'
local key, held, queue, alive, grants, channel, clients
--@include tell
--@include sem_state
--@include permit_state
--@include fairsem_queue
--@include fairsem_keep

-- refresh keeps entries of one semaphore alive, and adds to the reply where they stand. It returns
-- where in the reply each is.
local function refresh(entries, set, reply)
  local until_, signs, index = string.format('%.0f', clock() + stale), {}, {}
  for i, since in ipairs(redis.call('zmscore', queue, unpack(entries))) do
    if since then
      signs[#signs + 1] = until_
      signs[#signs + 1] = entries[i]
    end
    reply[#reply + 1] = not since and 0 or set and 1 or 3
    index[entries[i]] = #reply
  end
  if #signs > 0 then
    redis.call('zrem', alive, '') -- lets the rest pass on a server at its limit
    redis.call('zadd', alive, unpack(signs))
    keep()
  end
  return index
end

local reply, arg = {}, 5
for i = 1, #KEYS - 4, 5 do
  key, held, queue, alive, grants = unpack(KEYS, i, i + 4)
  channel, clients = ARGV[arg], ARGV[arg + 1]
  local entries = {}
  for n = 1, tonumber(ARGV[arg + 2]) do
    entries[n] = ARGV[arg + 2 + n]
  end
  arg = arg + 3 + #entries
  local free = look()
  local index = refresh(entries, free, reply)
  removed, gone = 0, {}
  if free then
    local left, head = pass(free, true)
    if head and index[head] and wanted(head) <= left and redis.call('hexists', grants, head) == 0 then
      reply[index[head]] = 0
    end
  else
    front()
  end
end
return reply
