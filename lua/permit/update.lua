-- Set the lease of a permit, longer or shorter.
--
--@keys key held note kind
--@args number id lease publish channel
--
-- Reply   array: 1 set, 2 an earlier copy set it; ms after which the semaphore ends, if that is before
--         the lease does, else 0
--         integer: 0 the permit is not held, or its lease is over
--
-- Waiters get a message if the lease now ends earlier. It is '1', because Redisson wakes as many
-- waiters as the message says.
--
-- Cost: at most 10 commands; O(log p). Works on a full server. Idempotent: the operation is noted,
-- so that a late copy shortens nothing.
--@include shared/op
--@include permit/state
local done, past = recall()
local _, wrong = look()
if past or wrong and not done then
  return past or wrong
elseif done then
  return {2, tonumber(untilEnd(lease, redis.call('pttl', held)) or 0)}
end

local score = redis.call('zscore', held, id)
if not score or lapsed(score) then
  --@include shared/only_master
  return 0
end
room()
local later = ends(lease)
redis.call('zadd', held, 'xx', later, id)
remember(2)
if tonumber(later) < tonumber(score) then
  tell(publish, channel, '1')
end
return {1, tonumber(untilEnd(lease, redis.call('pttl', held)) or 0)}
