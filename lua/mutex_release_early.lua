-- Release a plain lock that is to stay taken for a while, if the token is the holder's. Until then
-- the lock has the token <token>:kept, which no acquisition uses.
--
-- KEYS[1] lock: a string with the token of its holder
-- KEYS[2] queue (see hand_over.lua), unless it cannot be used
-- ARGV[1] token
-- ARGV[2] ms for which the lock is to stay taken; never longer than its remaining lease
-- ARGV[3] channel of the lock, ARGV[4] PUBLISH or SPUBLISH
-- ARGV[5] to ARGV[8] as ARGV[6] to ARGV[9] of lock_release_early.lua
--
-- Reply   nil: the token does not hold the lock; its entry is no longer in the queue
--         integer: nobody holds the lock, which stays taken; how many subscribers received the
--         message, -1 if the server refused it
--
-- Cost: 8 commands at most. Works on a server that is out of memory. Idempotent: on a lock of
-- somebody else it does nothing, and its own token is gone after the first time.
local key, queue, owner = KEYS[1], KEYS[2], ARGV[1]
local channel, publish, prefix, suffix, counted = ARGV[3], ARGV[4], ARGV[6], ARGV[7], ARGV[8]
--@include tell
--@include time_left
if queue and ARGV[5] ~= '' then
  redis.pcall('zrem', queue, ARGV[5])
end
if redis.call('get', key) ~= owner then
  --@include only_master
  return false
end
local left = timeLeft(tonumber(ARGV[2]))
redis.call('pexpire', key, left) -- lets the rest run on a server that is out of memory
redis.call('set', key, owner .. ':kept', 'px', left)
if queue then
  --@include ask_first
  pcall(askFirst, key, left + 1)
end
return tell(publish, channel)
