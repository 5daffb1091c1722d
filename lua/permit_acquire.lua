-- Acquire permits with ids, all or none (Redisson RPermitExpirableSemaphore).
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- KEYS[3] reservation (see sem_state.lua)
-- KEYS[4] channel
-- KEYS[5] mark of an acquisition that was given up, for leases without an end only
-- ARGV[1] lease in ms, '' without an end
-- ARGV[2] ms for which permits are to be kept for this acquisition if there are not
--         enough, '' if it has not waited for long
-- ARGV[3] PUBLISH or SPUBLISH
-- ARGV[4] who: names the acquisition, the same in all its attempts
-- ARGV[5...] ids, as bytes
--
-- Reply   nil: acquired
--         integer: refused; ms after which to ask again, -1 if that is not known
--         error LATCHKEY_UNSET: nobody has set the permits; nothing was acquired
--         error LATCHKEY_PAST: the acquisition was given up; nothing changed
--
-- Who waits for more than there are in all keeps nobody from anything.
--
-- Cost: about 10 commands; O(n log p) for n ids among p that are held. Permits whose lease
-- is over are put back, 64 or n at most. Idempotent, but that the lease begins anew: ids
-- are used once.
local key, held, reserve, channel, publish = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3]
local me, n = ARGV[4], #ARGV - 4
--@include tell
--@include sem_state
--@include permit_state

-- Of a repetition some or all ids may be held already, and some may have expired since:
-- what is missing is acquired again, and the lease of all begins anew.
local live, over = 0, {}
for i, score in ipairs(redis.call('zmscore', held, unpack(ARGV, 5))) do
  if score and lapsed(score) then
    over[#over + 1] = ARGV[i + 4]
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
local who, kept = reserved()
local mine = who == me
if mine then
  kept = 0
end
if n > 0 and free < n + (kept or 0) then
  local pause = nextEnd()
  if back > 0 then
    announce(free) -- others may want fewer
  end
  if ARGV[2] ~= '' and (mine or not who) and n <= free + redis.call('zcard', held) then
    redis.call('set', reserve, me .. ' ' .. n, 'px', ARGV[2])
  elseif who and free >= n then
    pause = redis.call('pttl', reserve)
  end
  return pause
end
if n > 0 then
  redis.call('decrby', key, n)
end
local members, score = {}, ends(ARGV[1])
for i = 5, #ARGV do
  members[#members + 1] = score
  members[#members + 1] = ARGV[i]
end
redis.call('zadd', held, 'gt', unpack(members))
local ttl = redis.call('pttl', key)
if ttl > 0 then
  redis.call('pexpire', held, ttl)
else
  redis.call('persist', held)
end
if mine then
  redis.call('del', reserve)
end
if mine or back > 0 then
  announce(free - n)
end
return false
