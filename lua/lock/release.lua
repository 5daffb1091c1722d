-- Give back a re-entrant lock, in part or in whole; also the undo of an
-- acquisition, the way out of the queue, and the forced release. A lock that becomes
-- free is handed over: see queue/hand_over.lua.
--
--@keys key queue=nil counter=nil
--@args owner channel count='0' me='' raise='0' publish='PUBLISH' own='' next=''
--@args prefix='latchkey:{' suffix='}' counted='1' full='0' keepFor='0'
--
--   key       lock hash (see lock/acquire.lua)
--   queue     see queue/hand_over.lua; without it and the fencing counter nothing is handed over
--   count     hold count of this client after this call, '0' for the last release; -1 drops the whole
--             hold of the owner, whatever its count
--   me        '' if the owner was made by this client, or the name of its part
--   raise     '0', or ms to which the remaining time is raised if the lock stays held
--   own       '', or the entry of the owner, if it may be in the queue
--   next      '', or the entry of the owner with which this client wants the lock again
--   full      '0', or the lease in ms of next if the reply grants it the lock
--   keepFor   '0', or with a count of '0' the ms for which the lock stays taken: see lock/stay_taken.lua
--
-- Reply   nil: this client has no part in the lock; its entry is no longer in the queue
--         status HELD: the owner still holds the lock
--         integer: the lock is free, or stays taken; how many subscribers received the message,
--         -1 if the server refused it
--         array: the lock has a new owner; that owner and its fencing token
--
-- If the reply is an integer or an array, next is in the queue or owns the lock; otherwise
-- it does neither. A lock that is found free is handed over too: this repairs a hand-over that
-- was lost.
--
-- Cost: 4 commands for the last release with nobody in the queue, 7 with a grant, 9 with keepFor.
-- Works on a server that is out of memory. Idempotent: counts are absolute; on a lock of
-- somebody else it does nothing, and only the call that frees the lock enters next.
--@include shared/tell

-- Usually the owner is the only one and nobody waits. Functions that this case does not need are
-- defined only later.
if queue and own ~= '' then
  redis.pcall('zrem', queue, own, '~' .. owner)
end
if keepFor ~= '0' then
  --@include lock/stay_taken
  if queue then
    --@include queue/ask_first
    pcall(askFirst, key, kept + 1)
  end
  return tell(publish, channel)
end
local left
if count == '0' and me == '' and redis.call('hlen', key) == 1 then
  left = redis.call('hdel', key, owner) == 1 and 'FREE'
else
  --@include lock/leave
  left = leave(tonumber(count), tonumber(raise))
end
if left == 'HELD' then
  return redis.status_reply(left)
end
if not left then
  --@include shared/only_master
end
local first = left == 'FREE' and next == '' and queue and redis.pcall('zpopmin', queue)
if left == 'FREE' and next == '' and not (first and first[1]) then
  return tell(publish, channel)
end
if not left and not (queue and redis.call('exists', key) == 0 and redis.pcall('exists', queue) == 1) then
  return false
end

--@include queue/hand_over
local function give(to, lease)
  redis.call('hset', key, to, '1')
  redis.call('pexpire', key, lease)
end

local worked, granted
if queue then -- a lock that cannot be handed over is free
  worked, granted = pcall(handOver, 'h', key, give, left and next or '', full, nil, first)
end
if not left then
  return false
end
return worked and granted or tell(publish, channel)
