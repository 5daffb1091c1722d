-- Break the generation of a barrier, and forget how many parties it has.
--
--@keys key waiting past
--@args last publish channel
--
--   last  the last generation, as seen before
--
-- Reply   integer: 1 nobody waits any more; 0 another generation has begun, and nothing changed
--
-- Because the caller names the generation, a copy that is executed late cannot break a later one.
--
-- Cost: at most 12 commands; O(log n). Works on a full server. Idempotent: a retry finds the
-- generation broken.
--@include barrier/state
local wrong = sync()
if wrong then
  return wrong
end
if integer(generation) ~= last then
  --@include shared/only_master
  return 0
end
if open() then
  finish('reset')
end
redis.call('hdel', key, 'parties')
return 1
