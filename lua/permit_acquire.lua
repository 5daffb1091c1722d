-- Acquire permits with ids, all or none (Redisson RPermitExpirableSemaphore).
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- KEYS[3] reservation (see sem_reserve.lua), KEYS[4] kind (see number_kind.lua)
-- KEYS[5] mark of an acquisition that was given up, for leases without an end only
-- ARGV[1] lease in ms, '' without an end
-- ARGV[2] ms for which permits are to be kept for this acquisition if there are not
--         enough, '' if it has not waited long
-- ARGV[3] PUBLISH or SPUBLISH, ARGV[4] channel
-- ARGV[5] name of the acquisition, the same in all its attempts
-- ARGV[6...] ids, as bytes
--
-- Reply   nil: acquired
--         string: acquired; ms after which the semaphore ends, if that is before the lease ends
--         array: refused; ms after which to retry, -1 if that is not known; how many permits are
--         available, and how many there are in total
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_UNSET: nobody has set the permits; nothing was acquired
--         error LATCHKEY_PAST: the acquisition was given up; nothing changed
--
-- One acquisition at a time that has waited long may have its permits kept: then others get
-- only the permits in excess of these. No permits are kept for an acquisition of more than
-- there are in total.
--
-- Cost: about 14 commands; O(n log p) for n ids among p that are held. Permits whose lease
-- is over are put back, 64 or n at most. Idempotent, except that the lease begins again: ids
-- are used once.
local key, held, reserve, kind, publish, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3], ARGV[4]
local me, n = ARGV[5], #ARGV - 5
--@include tell
--@include sem_state
--@include permit_state
--@include sem_reserve

-- On a retry some or all ids may be held already, and some may have expired since: the missing
-- ones are acquired again, and the lease of all begins again.
local live, over = 0, {}
for i, score in ipairs(redis.call('zmscore', held, unpack(ARGV, 6))) do
  if score and lapsed(score) then
    over[#over + 1] = ARGV[i + 5]
  elseif score then
    live = live + 1
  end
end
n = n - live
if n > 0 and KEYS[5] and redis.call('exists', KEYS[5]) == 1 then
  return redis.error_reply('LATCHKEY_PAST the acquisition was given up')
end
local free, wrong = look()
if not free then
  return wrong or unset()
end
if #over > 0 then
  redis.call('zrem', held, unpack(over))
  redis.call('incrby', key, #over)
end
local back = #over + putBack(n)
free = free + back
local last = reserved()
local kept, left = keptForOthers(last)
if n > 0 and free < n + kept then
  if back > 0 then
    offer(free) -- other waiters may want fewer
  end
  local total = free + redis.call('zcard', held)
  if ARGV[2] ~= '' and n <= total then
    keep(last, n, tonumber(ARGV[2]))
  end
  return {free >= n and left or nextEnd(), free, total}
end
if n > 0 then
  redis.call('decrby', key, n)
end
local members, score = {}, ends(ARGV[1])
for i = 6, #ARGV do
  members[#members + 1] = score
  members[#members + 1] = ARGV[i]
end
redis.call('zadd', held, 'gt', unpack(members))
local ttl = redis.call('pttl', key)
if ttl >= 0 then -- 0 in its last millisecond
  redis.call('pexpire', held, math.max(ttl, 1))
else
  redis.call('persist', held)
end
if letGo(last) or back > 0 then
  offer(free - n)
end
return untilEnd(ARGV[1])
