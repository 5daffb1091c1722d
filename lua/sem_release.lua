-- Give permits to a semaphore: release them, or add to the total.
--
-- KEYS[1] to KEYS[7], ARGV[1] and ARGV[3] to ARGV[8]: see sem_args.lua
-- ARGV[2] how many; a negative number removes permits
-- ARGV[9] channel on which clients of this library also listen
-- ARGV[10] 'release', 'release if set' or 'add', which changes the total
-- ARGV[11] '1' if strangers have had more permits than the caller: see sem_offer.lua
--
-- Reply   integer: 0 nobody has set the permits; nothing changed; else done, and 1 more than there are
--         strangers, while others are in the queue
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_RANGE <sum>: there would be fewer than 0 in all, or more than Redisson can count;
--         nothing changed; error LATCHKEY_PAST: see op.lua
--
-- A counter that does not exist is created, unless ARGV[10] forbids it.
--
-- Cost: at most 14 commands, and 5 for each client that is called, 64 at most. Works on a server that is out
-- of memory. Idempotent: the operation is noted.
--@include sem_args
local n, waits, how = tonumber(ARGV[2]), ARGV[9], ARGV[10]
--@include sem_offer
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
if how == 'add' or not free then -- those may wait that are not in the queue
  announce(now)
  pcall(serve, now)
  return 1
end
local sound, strangers = pcall(offer, now, ARGV[11] == '1') -- what fails leaves the permits free
return 1 + (sound and strangers or 0)
