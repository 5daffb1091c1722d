-- Forget a success, so that the work runs again.
--
--@keys key
--@args token
--
--   key    see once/acquire.lua
--   token  of the run that succeeded
--
-- Reply   1: forgotten
--         0: the key has no result of that run; nothing changed
--
-- Cost: 2 commands. Works on a full server. Idempotent: it forgets one run.
local there = redis.call('hmget', key, 'once', 'result')
if there[1] ~= token or not there[2] then
  --@include shared/only_master
  return 0
end
redis.call('del', key)
return 1
