-- End a run without a result, so that another owner can run, and wake the waiters.
--
--@keys key
--@args owner channel publish
--
--   key  see once/acquire.lua
--
-- Reply   integer: how many subscribers received the message, -1 if the server refused it
--         nil: the owner does not run; nothing changed
--
-- Cost: 3 commands. Works on a full server. Idempotent: only an owner that runs changes anything.
--@include shared/tell
if redis.call('hexists', key, owner) == 0 then
  --@include shared/only_master
  return false
end
redis.call('del', key)
return tell(publish, channel)
