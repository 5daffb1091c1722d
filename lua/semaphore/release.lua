-- Release permits of a semaphore.
--
--@keys key total note kind queue calls bar
--@args number n keeping publish channel clients suffix counts waits how short
--
--   n      how many
--   how    'release' or 'release if set'
--   short  '1' if strangers have had more permits than the caller: see offer
--
-- Reply   integer: 0 nobody has set the permits; nothing changed; else done, and 1 more than there are
--         strangers, while others are in the queue
--         error LATCHKEY_RANGE <sum>: more would be available than Redisson can count; nothing changed
--
-- A counter that does not exist is created, unless how forbids it.
--
-- Cost: at most 14 commands, and the calls. Works on a full server. Idempotent: the operation is
-- noted.
n = tonumber(n)
--@include semaphore/serve
--@include shared/op_once

if not free and how == 'release if set' then
  return nothing()
end
local wide = outOfRange((free or 0) + n, n)
if wide then
  return wide
end
room()
remember(1)
local now = redis.call('incrby', key, n)
if not free then
  markKind('')
  redis.call('del', total) -- of a semaphore that has gone
  announce(now) -- also to those that are not in the queue
  pcall(serve, now)
  return 1
end
local sound, listening = pcall(offer, now, waits, short == '1') -- what fails leaves the permits free
return 1 + (sound and listening or 0)
