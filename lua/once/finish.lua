-- Store the result of a run that has succeeded, which ends the run, and wake the waiters.
--
--@keys key
--@args owner channel publish token ttl result
--
--   key    see once/acquire.lua
--   token  of the run
--   ttl    how long the result is kept, in ms, or '' forever
--
-- Reply   integer: the result is stored, now or by an earlier copy; how many subscribers received the
--         message, -1 if the server refused it
--         nil: the run is over, and its result is not stored. If the owner runs again, by a late copy of its
--         acquisition, that ends too; else nothing changed
--
-- Cost: 5 commands. Works on a full server. Idempotent: a run stores one result, and only while its
-- owner runs.
--@include shared/tell
local there = redis.call('hmget', key, 'once', 'result', owner)
if there[1] ~= token or not (there[2] or there[3]) then
  if there[1] and there[3] then
    redis.call('del', key)
    tell(publish, channel)
  else
    --@include shared/only_master
  end
  return false
end
if there[3] then
  redis.call('hdel', key, owner) -- first, so that a full server runs the rest
  redis.call('hset', key, 'result', result)
  if ttl == '' then
    redis.call('persist', key)
  else
    redis.call('pexpire', key, ttl)
  end
end
return tell(publish, channel)
