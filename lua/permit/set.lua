-- Set the total number of permits, or add to it.
--
--@keys key held note kind queue alive grants
--@args number n how ttl publish channel clients suffix counts waits
--
--   n     how many
--   how   'try' if they are not set, 'set', or 'add'
--   ttl   ms that a new semaphore lives, or ''
--
-- Reply   integer: 1 done by this call, 0 they were set before; nothing changed
--         error LATCHKEY_RANGE <sum>: there would be fewer than 0 in all, or more than Redisson can
--         count; nothing changed
--
-- Ids that remain of a semaphore whose number is gone count as held.
--
-- Cost: about 13 commands, and the grants to waiters; O(log p). Works on a full server if the
-- semaphore exists. Idempotent: the operation is noted.
n = tonumber(n)
--@include permit/queue
--@include shared/op_once

if free and how == 'try' then
  return nothing()
end
local all = (free or 0) + redis.call('zcard', held)
local move = n
if how ~= 'add' then
  move = n - all
end
local wide = outOfRange(all + move, move, true)
if wide then
  return wide
end
if free then
  room()
end
remember(1)
if free then
  free = redis.call('incrby', key, move)
else
  free = all + move - redis.call('zcard', held)
  if ttl == '' then
    redis.call('set', key, free)
    redis.call('persist', held) -- of ids that have outlived the number
  else
    redis.call('set', key, free, 'px', ttl)
    redis.call('pexpire', held, ttl)
  end
  markKind(ttl)
end
if move > 0 then
  local sound, told = pcall(serve, free, waits) -- what fails leaves the permits free
  if sound and told == 0 then
    tell(publish, channel, '1') -- to waiters outside the queue, which wanted more than there were in all
  end
end
return 1
