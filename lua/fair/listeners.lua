-- Fragment: finds out which waiters of Redisson are alive. It belongs to fair/queue.lua.
--
-- A waiter of Redisson joins the queue, subscribes to its channel, tries again, and stays subscribed until it has
-- the lock or gives up: its subscription is its sign of life. Without one it has died, has lost its connection, or
-- is about to subscribe, and counts as alive for `stale` ms from the first look on. One look notes all silent
-- waiters, so those behind a process that died lose that time only once.
--
-- A server counts its own subscribers only. A missing one means something only on a server that has counted a
-- subscription of the same Redisson client before, which the run id shows. So after a failover or a move of the
-- slot no waiter counts as dead until its client has subscribed there, and none does if Redisson subscribes at a
-- replica, or in a cluster with classic messages, whose subscribers may be at any node.
--
-- An owner of this library that has no note is examined in the same way, wherever it is: either it lost its note
-- and will retry, or it was already used and came back with an old queue.
--
-- In notes, where a waiter of Redisson has no other entry:
--   <owner>   "?:<ms>": silent, and dead from that time on, unless it subscribes before
--   <client>  "<run id>:<ms>": this server has counted one of its subscriptions; the
--             entry counts until that time
--@needs notes stale publish prefix
--@include shared/clock
--@include fair/notes
local remembered = 600000

-- server returns the run id, or nil if the server does not count subscriptions.
local function server()
  local info = redis.pcall('info', 'server')
  if type(info) ~= 'string' or publish == 'PUBLISH' and string.find(info, '_mode:cluster') then
    return nil
  end
  return string.match(info, 'run_id:(%w+)')
end

-- write may fail: locks can still be released on a server that is out of memory.
local function write(field, text)
  redis.pcall('hset', notes, field, text)
  keep()
end

-- counted returns how many subscribers the channel of each waiter has, nil if the server does
-- not say.
local function counted(waiters)
  local words = {'pubsub', publish == 'SPUBLISH' and 'shardnumsub' or 'numsub'}
  for i, waiter in ipairs(waiters) do
    words[i + 2] = prefix .. waiter
  end
  local reply, counts = redis.pcall(unpack(words)), {}
  if reply.err then
    return
  end
  for i = 1, #waiters do
    counts[i] = tonumber(reply[2 * i])
  end
  return counts
end

-- update does the work of listen if any of the waiters is Redisson's.
local function update(waiters, texts)
  local theirs, places, clients = {}, {}, {}
  for i, waiter in ipairs(waiters) do
    if not since(texts[i]) then
      table.insert(theirs, waiter)
      table.insert(places, i)
      table.insert(clients, clientOf(waiter))
    end
  end
  local counts = theirs[1] and counted(theirs)
  if not counts then
    return
  end
  local here, known = nil, redis.call('hmget', notes, unpack(clients))
  for n, waiter in ipairs(theirs) do
    local i, there = places[n], known[n] and string.match(known[n], '^%w+')
    if there or counts[n] > 0 then
      here = here or server() or ''
    end
    local own = string.sub(waiter, 15, 15) == '8' -- see internal/base/identity/owner.go
    local trusted = own or there and there == here
    if counts[n] > 0 then
      if not own and here ~= '' and not (trusted and expiry(waiter, known[n]) > now + remembered / 2) then
        write(clients[n], here .. ':' .. string.format('%.0f', now + remembered))
      end
    elseif trusted and not texts[i] and stale then
      texts[i] = '?:' .. string.format('%.0f', math.min(now + stale, expiry(waiter)))
      write(waiter, texts[i])
    end
    if texts[i] and (counts[n] > 0 or not trusted) then
      redis.call('hdel', notes, waiter)
      texts[i] = false
    end
  end
end
