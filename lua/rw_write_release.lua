-- Give back a write hold, in part or in whole, and downgrade it if the owner still
-- reads; also the undo of an acquisition, and the way out for a writer that waits.
--
-- KEYS[1] lock, KEYS[2] leases, KEYS[3] writers, KEYS[4] notes (see rw_state.lua)
-- ARGV[1] owner
-- ARGV[2] write holds of the owner after this call
-- ARGV[3] '1' if the owner may be noted as a waiting writer
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6] ms to which the remaining time is raised if holds are left, or 0
-- ARGV[7] '1' if this client has had its turn beside strangers, else ''
--
-- Reply   nil: this ownership does not hold the lock; nothing changed
--         status HELD: the owner holds it still for writing
--         integer: nobody writes any more; how many subscribers were told, -1 if the
--         server refused the message
--         error WRONGTYPE: the key is another kind of object; the owner is no waiting
--         writer any more, and nothing else changed
--
-- Cost: 5 commands if nobody waits, 10 if others do; 7 to wait no more; 3 at most if nothing
-- changes. O(log n) in the readers and the waiting writers. Works on a server that is out of
-- memory. Idempotent: counts are absolute.
local key, leases, writers, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, count, publish, channel, due = ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[5], ARGV[7]
--@include tell
--@include rw_state
--@include rw_end_write

-- stopWaiting takes the owner off the waiting writers. If none is left, readers that
-- it has kept out may come.
local function stopWaiting()
  if redis.call('zrem', writers, owner) == 1 and not waitingWriter() then
    redis.call('hdel', notes, 'since')
    tellAll(publish, channel)
  end
end

if ARGV[3] == '1' then
  stopWaiting()
end
local mode, reads, writes, wrong = look(owner)
if wrong then
  return wrong
end
if writes == 0 then
  return false
end
if count > 0 then
  redis.call('hdel', key, '') -- lets the rest pass on a server at its limit
  redis.call('hset', key, owner .. ':write', count)
  local lease = tonumber(ARGV[6])
  if lease > 0 then
    hold(owner .. ':write', lease, true)
  end
  return redis.status_reply('HELD')
end
return endWrite(reads)
