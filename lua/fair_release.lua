-- Give back a fair lock, in part or in whole; also the undo of an acquisition, the
-- way out of the queue, and the forced release.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- KEYS[2] queue, KEYS[3] deadlines, KEYS[4] notes (see fair_notes.lua)
-- KEYS[5] fencing counter
-- ARGV[1] to ARGV[6]: owner, count, part, PUBLISH or
--         SPUBLISH, channel, raise. Each waiter has a channel of its own, which begins
--         with that of the lock; a forced release tells that one too, since it does not
--         know what kind of lock it is
-- ARGV[7] '1' if the owner may stand in the queue
-- ARGV[8] ms for which a waiter counts as alive after a sign of life
-- ARGV[9], ARGV[10] what the channels of clients begin and end with
-- ARGV[11] '1' if the server counts all who listen there
--
-- Reply   nil: this client has no part in the lock; if it stood in the queue, it
--         does no more
--         status HELD: the owner holds it still
--         integer: the lock is free; how many subscribers were told, -1 if the
--         server refused the message
--
-- Whenever the lock is free afterwards, it is passed on to the first of the queue (see
-- fair_grant.lua).
--
-- Cost: 4 commands for the last release if nobody waits, 12 if a waiter is granted the
-- lock, 6 if it is told to ask, 3 more for one of Redisson; O(log n) in the waiters. An owner that leaves the queue is taken out of it if
-- it is among the 256 at either end, and otherwise marked to be removed when it gets
-- there; at most 64 who are dead go from either end with it. It leaves the queue also if
-- the key of the lock has become something else, which is an error. Works on a server
-- that is out of memory.
-- Idempotent: counts are absolute; on a lock of somebody else it does nothing but
-- tell the queue that it is free, which is never wrong.
local key, queue, deadlines, notes, tokens = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, me, publish, channel = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local prefix, stale = channel .. ':', tonumber(ARGV[8])
local clients, suffix, counts = ARGV[9], ARGV[10], ARGV[11] == '1'
--@include tell
--@include lock_leave
--@include fair_clock
--@include fair_give

-- first passes the lock on if nobody waits, or the first of the queue is of this library,
-- alive, and wants no token. Returns how many were told, or nil: there is more to do then. Most
-- releases need nothing else, and nothing else is even defined for them.
local function first()
  local head = redis.call('lindex', queue, '0')
  if not head then
    redis.call('del', deadlines, notes) -- of a queue that has been deleted
    return 0
  end
  local text = redis.call('hget', notes, head) or ''
  local lease, life = string.match(text, '^%d+:(%d+):0:(%d+)$')
  life = tonumber(life or string.match(text, '^%d+:(%d+)$'))
  if not life then
    return
  end
  clock()
  if life <= now then
    return
  elseif not lease then
    return tell(publish, prefix .. head)
  end
  local told = give(head, string.match(head, '^(.*):') or head, lease, '0')
  return (told ~= 0 or not counts) and told or nil
end

if ARGV[7] == '1' then
  --@include fair_withdraw
end
local count = tonumber(ARGV[2])
local left = leave(count, tonumber(ARGV[6]))
if left == 'HELD' then
  return redis.status_reply(left)
end
if not left and redis.call('exists', key) == 1 then
  return false
end
-- A queue that is damaged must not turn a lock that is released into an error.
local sound, told = pcall(first)
if not sound then
  told = 0
elseif not told then
  --@include reserve
  --@include fair_notes
  --@include fair_queue
  --@include fair_grant
  local head, _, granted
  sound, told, head, _, granted = pcall(pass, nil, true)
  if sound and not head and not granted then
    redis.call('del', deadlines, notes)
  end
  told = sound and told or 0
end
if count < 0 then
  told = math.max(told, 0) + math.max(tell(publish, channel), 0)
end
return left and told
