-- Give back the last hold of a fair lock that is to stay taken for a while: see stay_taken.lua.
-- Nobody holds it until then.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- KEYS[2] queue, KEYS[3] deadlines, KEYS[4] notes (see fair_notes.lua)
-- KEYS[5] fencing counter, which is not used
-- ARGV[1] owner
-- ARGV[2] ms for which the lock is to stay taken
-- ARGV[3] '' if the owner was made by this client, or the name of its part
-- ARGV[4] channel of the lock, the prefix of the waiters' channels; ARGV[5] PUBLISH or SPUBLISH
-- ARGV[6] to ARGV[10] as ARGV[7] to ARGV[11] of fair_release.lua
-- ARGV[11] ms for which a waiter of Redisson keeps its place once it could acquire the lock
--
-- Reply   as in lock_release_early.lua
--
-- The script tells the first of the queue to retry: a client of this library when the lock is free, a
-- waiter of Redisson at once. A waiter of Redisson then sleeps until the time in its deadline, which
-- it computed from the lease that the lock had. So the script lowers the deadline to what it would be
-- now.
--
-- Cost: 12 commands at most, and what fair_release.lua needs to remove an owner from the queue. Works
-- on a server that is out of memory. Idempotent: the owner is gone after the first time; on a lock of
-- somebody else it does nothing.
local key, queue, deadlines, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, me, channel, publish = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local prefix, stale = channel .. ':', tonumber(ARGV[7])
local clients, suffix = ARGV[8], ARGV[9]
--@include tell
--@include fair_clock
if ARGV[6] == '1' then
  --@include fair_withdraw
end
--@include stay_taken

-- tellFirst notifies the first of the queue, and returns how many subscribers of its channel received that.
local function tellFirst()
  local head = redis.call('lindex', queue, '0')
  if not head then
    return 0
  end
  if not redis.call('hget', notes, head) then
    clock()
    redis.call('zadd', deadlines, 'xx', 'lt', string.format('%.0f', now + left + ARGV[11]), head)
  end
  local client = string.match(head, '^(.*):') or head
  tell(publish, clients .. client .. suffix, 'ask ' .. left + 1 .. ' ' .. head .. ' ' .. key)
  return tell(publish, prefix .. head)
end
local sound, receivers = pcall(tellFirst)
return sound and receivers or 0
