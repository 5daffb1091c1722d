-- Set the count of a latch that is not closed: begin a round.
--
--@keys key latch done note kind
--@args number last n ttl publish channel
--
--   last  the last round, as seen before; 0 if there was none
--   n     the count, at least 1
--   ttl   ms after which the latch expires, or ''
--
-- Reply   integer: 1 set by this call, 0 it is closed, or somebody has set it since; nothing changed
--
-- Because the caller names the last round, a late copy cannot begin another round.
--
-- Cost: at most 18 commands, 26 if Redisson or time has changed the latch. Idempotent: the
-- operation is noted.
--@include latch/state
--@include shared/op_once

if state == 'set' or round ~= last and round ~= '0' then
  return nothing()
end
redis.call('set', key, n)
local at
if ttl ~= '' then
  at = clock() + tonumber(ttl)
  redis.call('pexpireat', key, integer(at))
end
markKind('') -- begin makes it expire
begin(at)
remember(1)
tell(publish, channel, '1')
return 1
