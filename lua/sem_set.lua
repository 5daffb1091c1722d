-- Set the permits of a semaphore.
--
-- KEYS[1] permits, KEYS[2] total (see sem_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] kind (see number_kind.lua)
-- ARGV[1] number of the operation
-- ARGV[2] how many
-- ARGV[3] ms that the semaphore lives, or ''
-- ARGV[4] '1' to change permits that are already set
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
--
-- Reply   integer: 1 set by this call, 0 they were set before; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_UNSET: they are to be changed, but the total is not known;
--         nothing changed
--         error LATCHKEY_RANGE <sum>: more would be available than Redisson can count; nothing changed
--         error LATCHKEY_PAST: the operation is over
--
-- A change adds the difference of the totals to the available permits, which may become
-- negative.
--
-- Cost: at most 9 commands. Idempotent: the operation is noted.
local key, total, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local number, n, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local publish, channel = ARGV[5], ARGV[6]
--@include tell
--@include op
--@include sem_state
--@include sem_once

if free and ARGV[4] ~= '1' then
  return nothing()
end
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
  local now = redis.call('incrby', key, n - all)
  remember(1)
  if n > all then
    announce(now)
  end
  return 1
end
for _, each in ipairs({key, total}) do
  if ttl == '' then
    redis.call('set', each, n)
  else
    redis.call('set', each, n, 'px', ttl)
  end
end
markKind(ttl)
remember(1)
announce(n)
return 1
