-- Remove holders from a read/write lock by force.
--
--@keys key leases writers notes queue=nil
--@args publish channel prefix suffix counted queueName firstField...
--
--   leases, writers, notes  see rw/state.lua
--   queue       see queue/hand_over.lua; left out if it cannot be used
--   firstField  and on: fields of the holders: <owner> or <owner>:write
--
-- Reply   nil: none of them holds the lock; nothing changed
--         status OK: they no longer hold it
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Lease keys are left to expire, as Redisson leaves them. A lock without a holder is
-- removed, and all waiters get a message to retry.
--
-- Cost: 11 commands at most and one for each holder. Works on a server that is out of
-- memory. Idempotent: it removes only the holders that it names.
queue = queue == queueName and queue
--@include rw/state
local mode, _, _, wrong = look('')
if wrong then
  return wrong
end
if not mode then
  --@include shared/only_master
  return false
end
local function free()
  if not waitingWriter() then
    redis.call('del', writers, notes)
  else
    --@include queue/ask_first
    askFirst('0')
  end
  return mode == 'write' and tellAll(publish, channel) or tell(publish, channel)
end

local left, gone = remove({unpack(ARGV, firstField)}, mode)
if not left then
  free()
elseif gone == 0 then
  --@include shared/only_master
  return false
elseif left ~= mode then
  tellAll(publish, channel)
else
  fall()
end
return redis.status_reply('OK')
