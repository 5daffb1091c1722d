-- Acquire a fair lock (Redisson's fair lock), enter it once more, or wait in its queue.
--
--@keys key queue deadlines notes tokens
--@args owner lease count me floor publish prefix stale oldTicket shift fenced grant clients suffix counts
--
--   key        lock hash; its arguments are those of lock/acquire.lua: owner, lease, count, me, floor
--   queue, deadlines, notes  see fair/notes.lua
--   tokens     fencing counter
--   prefix     of the waiters' channels
--   stale      '' for a single attempt, else the ms for which the owner counts as alive when it joins
--              the queue, or if it has died there. Another attempt does not keep a waiter alive:
--              fair/refresh.lua does
--   oldTicket  the ticket of an earlier call, or ''
--   shift      ms that a Redisson process subtracts from all deadlines when it acquires the lock
--   fenced     '1' if the lock is fenced
--   grant      ms of the lease for which the owner is granted the lock while it waits, '' if it
--              retries by itself
--
-- Reply   nil, or the fencing token as a string: acquired
--         array: refused, single attempt; remaining ms of the holder, -1 if it has no
--         expiry, and its owner; or an integer alone, 0 if the lock is free but others wait
--         array: refused and in the queue; ms after which to retry (-1: the holder has no
--         expiry), the ticket, the owner of the holder or '', 1 if waiters of Redisson are
--         ahead of the owner, else 0, and the remaining ms of the holder, -1 if it has no
--         expiry or nobody holds the lock
--         error LATCHKEY_GONE, error WRONGTYPE: as in lock/acquire.lua
--
-- A free lock goes to the first waiter of the queue (see fair/grant.lua); without a queue, to the caller. Dead
-- waiters at the head of the queue are removed, about 64 in one call, or all if nobody is alive. An owner that
-- joins the queue removes as many from its end.
--
-- Cost: 4 commands when free and nobody waits, 8 for the first of the queue, 10 to join it behind a waiter of
-- this library, about 20 behind a waiter of Redisson, where it looks at the last 256; O(log n) in the waiters.
-- An owner that lost its place through no fault of its own needs O(n) list steps once to get it back.
-- Idempotent: counts are absolute, and an owner is in the queue only once.
lease, count, stale, counts = tonumber(lease), tonumber(count), tonumber(stale), counts == '1'
local counter = fenced == '1' and tokens
local timed = counter and floor == '1' and 't' or ''
local want = grant ~= '' and grant .. ':' .. fenced .. timed .. ':' or ''
local ahead = false -- whether waiters of Redisson are known to be ahead of the owner
--@include shared/clock

-- join puts the caller at the end of the queue, as usual, in half of the time that ensurePlace takes. It returns
-- the ticket as text. It changes nothing and returns nil if the owner may have a place
-- or had one, or if the last waiter of the queue is not of this library, or is dead.
local function join()
  local last = redis.call('lindex', queue, -1)
  if not last then
    clock()
    --@include fair/open
    return open(nil, now + stale)
  end
  local text = redis.call('hget', notes, last) or ''
  local since, life = string.match(text, '^(%d+):.-(%d+)$')
  local deadline = since and redis.call('zscore', deadlines, last)
  if not deadline or tonumber(life) <= clock() then
    return
  end
  -- A ticket is later than the last one, even if the clock of the server was set back.
  local ticket = string.format('%.0f', math.max(micros, since + 1))
  local alive = string.format('%.0f', now + stale)
  ahead = deadline ~= life and deadline - life > 0
  deadline = ahead and alive + (deadline - life) or alive
  if redis.call('zadd', deadlines, 'nx', deadline, owner) == 0 then
    return
  elseif redis.call('hsetnx', notes, owner, ticket .. ':' .. want .. alive) == 0 then
    redis.call('zrem', deadlines, owner)
    return
  end
  redis.call('rpush', queue, owner)
  return ticket
end

--@include lock/hash
local ttl = redis.call('pttl', key)
local fresh = stale and oldTicket == ''
local first = ttl == -2 and redis.call('lindex', queue, 0)
local holder, ticket
if ttl ~= -2 or count > 1 then
  local entered, reply = enter(ttl)
  if entered then
    return reply
  elseif not stale then
    return reply and {ttl, reply} or ttl
  end
  holder = reply
  lastToken()
  ticket = fresh and join()
  if ticket and ttl >= 0 then
    return {ttl, ticket, holder or '', ahead and 1 or 0, ttl}
  end
elseif not first and oldTicket == '' then
  return select(2, enter(ttl))
end

--@include fair/grant
--@include fair/ensure_place

-- takeTurn makes the owner hold the lock. The owner is the head of the queue, if there is one.
local function takeTurn(head)
  local _, token = enter(-2)
  if head then
    redis.call('lpop', queue)
    pcall(forget, owner)
  end
  return token
end

if first and first == owner and since(redis.call('hget', notes, owner)) then
  return takeTurn(first)
end
if stale and not ticket then
  lastToken()
  ticket = ensurePlace(oldTicket, tonumber(shift))
end
local pause = ttl
if ttl == -2 then
  local _, head, left, granted = pass(owner, moved)
  if not granted and (not head or head == owner) then
    return takeTurn(head)
  end
  holder, pause, ttl = granted, left, granted and left or -1
else
  local head, left = front()
  if head ~= owner and (ttl < 0 or left < ttl) then
    pause = left
  end
end
if not stale then
  return holder and {pause, holder} or 0
end
return {pause, ticket, holder or '', ahead and 1 or 0, ttl}
