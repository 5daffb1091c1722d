-- Set the lease of a permit, longer or shorter.
--
-- KEYS[1] permits, KEYS[2] ids (see permit/state.lua), KEYS[3] note (see shared/op.lua)
-- KEYS[4] kind (see shared/number_kind.lua)
-- ARGV[1] number of the operation
-- ARGV[2] id, as bytes
-- ARGV[3] ms from now, '' without an end
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
--
-- Reply   array: 1 set, 2 an earlier copy set it; ms after which the semaphore ends, if that is before
--         the lease does, else 0
--         integer: 0 the permit is not held, or its lease is over
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see shared/op.lua
--
-- Waiters get a message if the lease now ends earlier. It is '1', because Redisson wakes as
-- many waiters as the message says.
--
-- Cost: at most 10 commands; O(log p). Works on a server that is out of memory.
-- Idempotent: the operation is noted, so that a late copy shortens nothing.
local key, held, note, kind, number = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local publish, channel = ARGV[4], ARGV[5]
--@include shared/op
--@include permit/state
local done, past = recall()
local _, wrong = look()
if past or wrong and not done then
  return past or wrong
elseif done then
  return {2, tonumber(untilEnd(ARGV[3], redis.call('pttl', held)) or 0)}
end

local score = redis.call('zscore', held, ARGV[2])
if not score or lapsed(score) then
  --@include shared/only_master
  return 0
end
room()
local later = ends(ARGV[3])
redis.call('zadd', held, 'xx', later, ARGV[2])
remember(2)
if tonumber(later) < tonumber(score) then
  tell(publish, channel, '1')
end
return {1, tonumber(untilEnd(ARGV[3], redis.call('pttl', held)) or 0)}
