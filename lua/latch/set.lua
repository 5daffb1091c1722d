-- Set the count of a latch that is not closed: begin a round.
--
-- KEYS[1] count, KEYS[2] state, KEYS[3] participants (see latch/state.lua)
-- KEYS[4] note (see shared/op.lua), KEYS[5] kind (see shared/number_kind.lua)
-- ARGV[1] number of the operation
-- ARGV[2] the last round, as seen before; 0 if there was none
-- ARGV[3] the count, at least 1
-- ARGV[4] ms after which the latch expires, or ''
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
--
-- Reply   integer: 1 set by this call, 0 it is closed, or somebody has set it since;
--         nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see shared/op.lua
--
-- Because the caller names the last round, a copy that is executed late cannot begin a round
-- that nobody wants any more.
--
-- Cost: at most 18 commands, 26 if Redisson or time has changed the latch. Idempotent: the
-- operation is noted.
local key, latch, done, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, last, n, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include latch/once

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
tell(ARGV[5], ARGV[6], '1')
return 1
