-- Set the permits of a semaphore.
--
-- KEYS[1] to KEYS[7], ARGV[1] and ARGV[3] to ARGV[8]: see sem_args.lua
-- ARGV[2] how many
-- ARGV[9] ms that the semaphore lives, or ''
-- ARGV[10] '1' to change permits that are already set
--
-- Reply   integer: 1 set by this call, 0 they were set before; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_UNSET: they are to be changed, but the total is not known;
--         nothing changed
--         error LATCHKEY_RANGE <sum>: more would be available than Redisson can count; nothing changed; error LATCHKEY_PAST: see op.lua
--
-- A change adds the difference of the totals to the available permits, which may become
-- negative.
--
-- Cost: at most 12 commands, and 5 for each client that is called, 64 at most. Idempotent: the operation is
-- noted.
--@include sem_args
local n, ttl, change = tonumber(ARGV[2]), ARGV[9], ARGV[10] == '1'
--@include sem_serve
--@include sem_once

if free and not change then
  return nothing()
end
local now, more = n, n
if free then
  local all = tonumber(redis.call('get', total) or nil)
  if not all then
    return unset()
  end
  local wide = outOfRange(free + n - all, n - all)
  if wide then
    return wide
  end
  redis.call('set', total, n, 'keepttl')
  more = n - all
  now = redis.call('incrby', key, more)
else
  for _, each in ipairs({key, total}) do
    if ttl == '' then
      redis.call('set', each, n)
    else
      redis.call('set', each, n, 'px', ttl)
    end
  end
  markKind(ttl)
end
remember(1)
if more > 0 then
  announce(now) -- also to those that are not in the queue
  pcall(serve, now)
end
return 1
