-- Release a plain lock if the token is the holder's; also the undo of an
-- acquisition, the way out of the queue, and the forced release. A lock that becomes
-- free is handed over: see queue/hand_over.lua.
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
-- Cost: 4 commands with nobody in the queue, 5 with a grant, 8 with keepFor. Works on a server that is out
-- of memory. Idempotent: on a lock of somebody else it does nothing.
local counter -- a mutex has no tokens
--@include shared/tell

-- free deletes the mutex, which was granted to nobody, and notifies all waiters.
local function free()
  redis.call('del', key)
  return tell(publish, channel)
end

if queue and own ~= '' then
  redis.pcall('zrem', queue, own, '~' .. owner)
end
local holder = redis.call('get', key)
local mine = holder == owner
if not mine then
  --@include shared/only_master
end
if not mine and (holder or keepFor ~= '0') then
  return false
end
if keepFor ~= '0' then
  --@include shared/time_left
  local left = timeLeft(tonumber(keepFor))
  redis.call('pexpire', key, left) -- lets the rest run on a server that is out of memory
  redis.call('set', key, owner .. ':kept', 'px', left)
  if queue then
    --@include queue/ask_first
    pcall(askFirst, key, left + 1)
  end
  return tell(publish, channel)
end
local open = mine and openFor ~= '0'
-- Usually nobody waits for the mutex. Functions that this case does not need are defined only
-- later.
local first = not open and next == '' and queue and redis.pcall('zpopmin', queue)
if not open and next == '' and not (first and first[1]) then
  return mine and free()
end
if mine and (open or next ~= '') then
  redis.call('del', key) -- lets the rest run on a server that is out of memory
end
if open then
  -- mayStayFree reports whether it is the turn of other libraries, by the microsecond in which the
  -- script runs: each client requests that turn as often as if it were the only one.
  local function mayStayFree()
    local waiting = queue and redis.pcall('zcard', queue)
    return type(waiting) ~= 'number' or waiting < 2 or redis.call('time')[2] % waiting == 0
  end

  -- leaveFree puts the entry next into the queue, and tells the first there to retry later.
  local function leaveFree()
    if not queue then
      return
    end
    if next ~= '' then
      --@include queue/enqueue
      enqueue(next)
    end
    --@include queue/ask_first
    askFirst(key, openFor)
  end

  if mayStayFree() then
    pcall(leaveFree)
    return 0
  end
end

--@include queue/hand_over
local function give(to, lease)
  redis.call('set', key, to, 'px', lease)
end

local worked, granted
if queue then -- a mutex that cannot be handed over is free
  worked, granted = pcall(handOver, 's', key, give, mine and next or '', full, nil, first)
end
if not mine then
  return false
end
return worked and granted or free()
