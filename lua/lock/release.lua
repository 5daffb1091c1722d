-- Give back a re-entrant lock, in part or in whole; also the undo of an acquisition, the way out of the queue,
-- and the forced release. A lock that becomes free, or is found free after a hand-over was lost, is handed over:
-- see queue/hand_over.lua.
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
-- If the reply is an integer or an array, next is in the queue or owns the lock; otherwise it does neither.
--
-- Cost: 4 commands for the last release with nobody in the queue, 10 with a grant, 9 with keepFor.
-- Works on a server that is out of memory. Idempotent: counts are absolute; on a lock of
-- somebody else it does nothing, and only the call that frees the lock enters next.
--@include shared/tell
if queue and own ~= '' then
  redis.pcall('zrem', queue, own, '~' .. owner)
end
if keepFor ~= '0' then
  --@include lock/stay_taken
  --@include queue/ask_first
  askFirst(kept + 1)
  return tell(publish, channel)
end
--@include lock/leave
local left = leave(tonumber(count), tonumber(raise))
if left == 'HELD' then
  return redis.status_reply(left)
end
if not left then
  --@include shared/only_master
  if redis.call('exists', key) == 1 then
    return false
  end
end
if next == '' and (not queue or redis.pcall('exists', queue) == 0) then
  return left and tell(publish, channel) -- usually nobody waits
end
--@include queue/hand_over
local function give(to, lease)
  redis.call('hset', key, to, '1')
  redis.call('pexpire', key, lease)
end

local granted = handOver('h', give, left and next or '', full)
return left and (granted or tell(publish, channel))
