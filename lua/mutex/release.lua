-- Release a plain lock if the token is the holder's; also the undo of an acquisition, the way out of the queue, and
-- the forced release. A lock that becomes free is handed over: see queue/hand_over.lua.
--
--@keys key queue=nil
--@args owner channel publish='PUBLISH' own='' next='' prefix='latchkey:{' suffix='}' counted='1' full='0'
--@args openFor='0' keepFor='0'
--
--   key      string with the token of its holder
--   queue    see queue/hand_over.lua; without it nothing is handed over
--   owner    the token
--   own, next, full  as in lock/release.lua
--   openFor  '0', or ms for which the mutex is to stay free, so that users of the recipe that poll can
--            acquire it. If n entries are in the queue, it stays free in one of n calls
--   keepFor  '0', or ms for which the mutex stays taken, but never longer than its remaining lease.
--            Until then it has the token <token>:kept, which no acquisition uses
--
-- Reply   nil: the token does not hold the lock; its entry is no longer in the queue
--         integer: the lock is free, or stays taken; how many subscribers received the message,
--         -1 if the server refused it
--         array: the lock has a new owner; that owner and 0
--
-- Cost: 4 commands with nobody in the queue, 9 with a grant, 8 with keepFor. Works on a server that is out
-- of memory. Idempotent: on a lock of somebody else it does nothing.
local counter -- a mutex has no tokens
--@include shared/tell
if queue and own ~= '' then
  redis.pcall('zrem', queue, own, '~' .. owner)
end
local holder = redis.call('get', key)
local mine = holder == owner
if not mine then
  --@include shared/only_master
  if holder or keepFor ~= '0' then
    return false
  end
end
if keepFor ~= '0' then
  --@include shared/time_left
  local left = timeLeft(tonumber(keepFor))
  redis.call('pexpire', key, left) -- lets the rest run on a server that is out of memory
  redis.call('set', key, owner .. ':kept', 'px', left)
  --@include queue/ask_first
  askFirst(left + 1)
  return tell(publish, channel)
end
if mine then
  redis.call('del', key)
end
if openFor == '0' and next == '' and (not queue or redis.pcall('exists', queue) == 0) then
  return mine and tell(publish, channel) -- usually nobody waits
end
--@include queue/hand_over

-- isTurnOfOthers reports whether it is the turn of other libraries, by the microsecond in which the
-- script runs: each client requests that turn as often as if it were the only one.
local function isTurnOfOthers()
  local waiting = queue and redis.pcall('zcard', queue)
  return type(waiting) ~= 'number' or waiting < 2 or redis.call('time')[2] % waiting == 0
end

if mine and openFor ~= '0' and isTurnOfOthers() then
  if next ~= '' then
    --@include queue/enqueue
    pcall(enqueue, next)
  end
  --@include queue/ask_first
  askFirst(openFor)
  return 0
end
local function give(to, lease)
  redis.call('set', key, to, 'px', lease)
end

local granted = handOver('s', give, mine and next or '', full)
return mine and (granted or tell(publish, channel))
