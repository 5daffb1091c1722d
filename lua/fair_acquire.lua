-- Acquire a fair lock (Redisson's fair lock), enter it once more, or wait in its
-- queue.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- KEYS[2] queue, KEYS[3] deadlines, KEYS[4] notes (see fair_queue.lua)
-- KEYS[5] fencing counter, for a fenced lock only
-- ARGV[1] to ARGV[5] as in lock_acquire.lua: owner, lease, count, part, floor
-- ARGV[6] PUBLISH or SPUBLISH
-- ARGV[7] what the waiters' channels begin with
-- ARGV[8] '' for one attempt, else the ms for which the owner counts as alive when it
--         joins the queue, or comes back to life in it. One that is alive there is kept
--         so by fair_refresh.lua, not by asking
-- ARGV[9] the ticket of an earlier call, or ''
-- ARGV[10] ms that a Redisson process takes off all deadlines when it acquires
--
-- Reply   nil, or the fencing token as a string: acquired
--         array: refused, one attempt; remaining ms of the holder, -1 if it has no
--         expiry, and its owner; or an integer alone, 0 if the lock is free but others wait
--         array: refused and in the queue; ms after which to ask again (-1: the
--         holder has no expiry), the ticket, and the owner of the holder if there is one
--         error LATCHKEY_GONE, error WRONGTYPE: as in lock_acquire.lua
--
-- A lock that is free goes to the first of the queue, and to anybody if there is no
-- queue. Heads that are dead are removed on the way, at most 64 in one call, or all if
-- nobody is alive. Who joins the queue removes as many from its end.
--
-- Cost: 4 commands when free and nobody waits, 8 for the first of the queue, about
-- 20 to join it, and among waiters of Redisson a look at the last 256; 3 more if one of
-- Redisson is the first; O(log n) in the waiters. One that has lost its place by no
-- fault of its own costs O(n) list steps once, to get it back. Idempotent: counts are
-- absolute, an owner stands in the queue once.
local key, queue, deadlines, notes, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, lease, count, me, floor = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local publish, prefix, stale = ARGV[6], ARGV[7], tonumber(ARGV[8])
--@include tell
--@include lock_hash
--@include fair_queue
--@include fair_stand

local ttl = redis.call('pttl', key)
local holder
if ttl ~= -2 then
  local entered, reply = enter(ttl)
  if entered then
    return reply
  end
  holder = reply
elseif count > 1 then
  return redis.error_reply('LATCHKEY_GONE the hold is over')
end

local waited = ARGV[9] ~= ''
if ttl ~= -2 and not stale then
  return holder and {ttl, holder} or ttl
end
if ttl == -2 and not waited and not redis.call('lindex', queue, 0) then
  return take()
end
local ticket
if stale then
  issuable()
  ticket = stand(ARGV[9], tonumber(ARGV[10]))
end
local head, left = front()
if ttl == -2 and (not head or head == owner) then
  local issued = take()
  if head then
    redis.call('lpop', queue)
  end
  forget(owner)
  clear()
  return issued
end
if ttl == -2 and (pruned > 0 or moved) and left > 0 then
  tell(publish, prefix .. head)
end
if not stale then
  return 0
end
local pause = ttl
if ttl == -2 or head ~= owner and (ttl < 0 or left < ttl) then
  pause = left
end
return {pause, string.format('%.0f', ticket), holder}
