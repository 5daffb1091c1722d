-- Keep waiters for permits with ids alive, many at once, and report their state.
--
--@keys (key held queue alive grants kind)...
--@args stale publish suffix counts firstSemaphore...
--
--   firstSemaphore  and on, for each: its channel, the prefix of the channels of clients, the number of
--                   its entries in this call, and these entries
--
-- Reply   array, for each entry: 1 it has its place; 0 it has to retry: it has no place, it was
--         granted its permits, the key is another kind of object, or it is the first, retries by
--         itself, and there are enough permits for it; 3 it has its place, and nobody has set the permits
--
-- The script gives no places. Free permits go to the front of the queue.
--
-- Cost: about 12 commands for each semaphore and 2 for each entry, and the grants; O(log w) each.
-- Works on a full server. Idempotent.
stale = tonumber(stale)
local channel, clients
--@include permit/queue

-- refresh keeps entries of one semaphore alive, and adds their states to the reply. It returns the
-- index of each entry in the reply.
local function refresh(entries, state, reply)
  local until_, signs, index = string.format('%.0f', clock() + stale), {}, {}
  for i, since in ipairs(redis.call('zmscore', queue, unpack(entries))) do
    if since then
      signs[#signs + 1] = until_
      signs[#signs + 1] = entries[i]
    end
    reply[#reply + 1] = since and state or 0
    index[entries[i]] = #reply
  end
  if #signs > 0 then
    redis.call('zrem', alive, '') -- lets the rest run on a full server
    redis.call('zadd', alive, unpack(signs))
    prolong(stale)
  end
  return index
end

local reply, arg = {}, firstSemaphore
for i = 1, #KEYS - 5, 6 do
  key, held, queue, alive, grants, kind = unpack(KEYS, i, i + 5)
  channel, clients = ARGV[arg], ARGV[arg + 1]
  local entries = {}
  for n = 1, tonumber(ARGV[arg + 2]) do
    entries[n] = ARGV[arg + 2 + n]
  end
  arg = arg + 3 + #entries
  local free, wrong = look()
  local index = refresh(entries, wrong and 0 or free and 1 or 3, reply)
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
