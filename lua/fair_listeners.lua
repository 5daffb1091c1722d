-- Fragment: which waiters of Redisson are alive. It belongs to fair_queue.lua.
--
-- A waiter of Redisson joins the queue, subscribes to its channel, asks again, and stays
-- subscribed until it has the lock or gives up: its subscription is its sign of life. If
-- its channel has no subscriber, it has died, has lost its connection, or is about to
-- subscribe. It then counts as alive for `stale` ms more, from the first look on, like a
-- waiter of this library that gives no sign. All who are silent are noted at one look,
-- so that a process that died costs its successors that time once.
--
-- A server counts its own subscribers only. That nobody listens is a sign only where
-- somebody would be counted: on the server that has counted a subscription of the same
-- Redisson client before, which is known by its run id. So nobody is taken for dead
-- after a failover or a move of the slot until its client has subscribed there, or if
-- Redisson subscribes at a replica. In a cluster the subscribers of classic messages may
-- be at any node, and nobody is taken for dead.
--
-- An owner of this library is looked at in the same way if it has no note: it has lost it, and
-- will ask, or it is used up and came back with an old queue. Wherever nobody listens for it, it is silent.
--
-- In notes, where a waiter of Redisson has none otherwise:
--   <owner>   "?:<ms>": silent, and dead from then on, unless it is heard before
--   <client>  "<run id>:<ms>": this server has counted one of its subscriptions; that
--             is remembered until then
local remembered = 600000

-- server returns the run id, or nil where subscriptions are not counted.
local function server()
  local info = redis.pcall('info', 'server')
  if type(info) ~= 'string' or publish == 'PUBLISH' and string.find(info, '_mode:cluster') then
    return nil
  end
  return string.match(info, 'run_id:(%w+)')
end

-- write may fail: a server at its limit still lets locks be released.
local function write(field, text)
  redis.pcall('hset', notes, field, text)
  keep()
end

-- counted returns, for each of these waiters, how many subscribers its channel has; nil
-- if the server does not say.
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

-- update is what listen does if any of the waiters is Redisson's.
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
    local own = string.sub(waiter, 15, 15) == '8' -- see newClientID in client.go
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
