-- Remove holders from a read/write lock by force.
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw/state.lua)
-- KEYS[5] queue (see queue/hand_over.lua), unless it cannot be used
-- ARGV[1] PUBLISH or SPUBLISH, ARGV[2] channel
-- ARGV[3], ARGV[4] prefix and suffix of the channel of a client
-- ARGV[5] '1' if the server counts all receivers of a message
-- ARGV[6] name of the queue
-- ARGV[7...] fields of the holders: <owner> or <owner>:write
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
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local publish, channel, prefix, suffix, counted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local queue = KEYS[5] == ARGV[6] and KEYS[5]
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
  elseif queue then
    --@include queue/ask_first
    pcall(askFirst, key, '0')
  end
  return mode == 'write' and tellAll(publish, channel) or tell(publish, channel)
end

local left, gone = remove({unpack(ARGV, 7)}, mode)
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
