-- Give permits to a semaphore: release them, or add to the total.
--
-- KEYS[1] permits, KEYS[2] total (see sem_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] kind (see number_kind.lua)
-- ARGV[1] number of the operation
-- ARGV[2] how many; a negative number removes permits
-- ARGV[3] 'release', 'release if set' or 'add', which changes the total
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6] channel on which clients of this library also listen
--
-- Reply   integer: 1 done, 0 nobody has set the permits; nothing changed
--         array: done; how many subscribers received the message, how many listen to ARGV[6]
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_RANGE <sum>: there would be fewer than 0 in all, or more than Redisson can count;
--         nothing changed
--         error LATCHKEY_PAST: the operation is over
--
-- A counter that does not exist is created, unless ARGV[3] forbids it.
--
-- Cost: at most 11 commands. Works on a server that is out of memory. Idempotent: the
-- operation is noted, but not how many received the message.
local key, total, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local number, n, how = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local publish, channel = ARGV[4], ARGV[5]
--@include tell
--@include op
--@include sem_state
--@include sem_once

if not free and how == 'release if set' then
  return nothing()
end
local wide = outOfRange((free or 0) + n, n)
if how == 'add' and not wide then
  local all = free and tonumber(redis.call('get', total) or nil) or not free and 0
  wide = all and outOfRange(all + n, n, true)
end
if wide then
  return wide
end
room()
local now = redis.call('incrby', key, n)
if not free then
  markKind('')
end
if not free and how ~= 'add' then
  redis.call('del', total) -- of a semaphore that has gone
elseif how == 'add' then
  if not free then
    redis.call('set', total, n)
  elseif redis.call('exists', total) == 1 then
    redis.call('incrby', total, n)
  end
end
remember(1)
local receivers = n > 0 and announce(now) or 0
if receivers > 0 and how ~= 'add' then
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', ARGV[6])
  return {receivers, type(count) == 'table' and tonumber(count[2]) or 0}
end
return 1
