-- Break the generation of a barrier, and forget how many parties it has.
--
-- KEYS[1] barrier, KEYS[2] waiting, KEYS[3] past (see barrier/state.lua)
-- ARGV[1] the last generation, as seen before
-- ARGV[2] PUBLISH or SPUBLISH, ARGV[3] channel
--
-- Reply   integer: 1 nobody waits any more; 0 another generation has begun, and nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Because the caller names the generation, a copy that is executed late cannot break a later one.
--
-- Cost: at most 12 commands; O(log n). Works on a server that is out of memory. Idempotent:
-- a retry finds the generation broken.
local key, waiting, past, publish, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3]
--@include barrier/state
local wrong = sync()
if wrong then
  return wrong
end
if integer(generation) ~= ARGV[1] then
  --@include shared/only_master
  return 0
end
if open() then
  finish('reset')
end
redis.call('hdel', key, 'parties')
return 1
