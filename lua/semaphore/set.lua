-- Set the permits of a semaphore, or add to them.
--
--@keys key total note kind queue calls bar
--@args number n keeping publish channel clients suffix counts ttl how
--
--   n    how many; a negative number to add removes permits
--   ttl  ms that a new semaphore lives, or ''
--   how  'try' if they are not set, 'set', or 'add'
--
-- Reply   integer: 1 done by this call, 0 they were set before; nothing changed
--         error LATCHKEY_UNSET: they are set, and the total to change is not known; nothing changed
--         error LATCHKEY_RANGE <sum>: there would be fewer than 0 in all, or more than Redisson can
--         count; nothing changed
--
-- A change adds the difference of the totals to the available permits, which may become negative.
--
-- Cost: at most 13 commands, and the calls. Works on a full server. Idempotent: the operation is
-- noted.
n = tonumber(n)
--@include semaphore/serve
--@include shared/op_once

if free and how == 'try' then
  return nothing()
end
local all, more = 0, n
if free then
  all = tonumber(redis.call('get', total) or nil)
  if how == 'set' and not all then
    return unset()
  elseif how == 'set' then
    more = n - all
  end
end
local wide = outOfRange((free or 0) + more, more) or all and outOfRange(all + more, more, true)
if wide then
  return wide
end
room()
remember(1)
if free then
  free = redis.call('incrby', key, more)
  if all then
    redis.call('set', total, string.format('%.0f', all + more), 'keepttl')
  end
else
  for _, each in ipairs({key, total}) do
    if ttl == '' then
      redis.call('set', each, n)
    else
      redis.call('set', each, n, 'px', ttl)
    end
  end
  markKind(ttl)
  free = n
end
if more > 0 then
  announce(free) -- also to those that are not in the queue
end
pcall(serve, free) -- fewer permits too: an entry that wants more than there are now makes way
return 1
