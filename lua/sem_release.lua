-- Give permits to a semaphore: release them, or add to the total.
--
-- KEYS[1] permits, KEYS[2] total (see sem_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] kind (see number_kind.lua)
-- KEYS[5] queue, KEYS[6] calls, KEYS[7] bar (see sem_serve.lua)
-- ARGV[1] number of the operation
-- ARGV[2] how many; a negative number removes permits
-- ARGV[3] ms for which permits are kept for a client that is called
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6], ARGV[7] prefix and suffix of the channels of clients
-- ARGV[8] '1' if the server counts all listeners of these channels
-- ARGV[9] channel on which clients of this library also listen
-- ARGV[10] 'release', 'release if set' or 'add', which changes the total
-- ARGV[11] '1' if strangers have had more permits than the caller: see sem_offer.lua
--
-- Reply   integer: 0 nobody has set the permits; nothing changed; else done, and 1 more than there are
--         strangers, while others are in the queue
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_RANGE <sum>: there would be fewer than 0 in all, or more than Redisson can count;
--         nothing changed
--         error LATCHKEY_PAST: the operation is over
--
-- A counter that does not exist is created, unless ARGV[10] forbids it.
--
-- Cost: at most 14 commands, and 5 for each client that is called, 64 at most. Works on a server that is out
-- of memory. Idempotent: the operation is noted.
local key, total, note, kind, queue, calls, bar = unpack(KEYS)
local number, n, keeping = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local publish, channel, clients, suffix, counts = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1'
local waits, how = ARGV[9], ARGV[10]
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
