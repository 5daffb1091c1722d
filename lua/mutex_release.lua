-- Release a plain lock if the token is the holder's; also the undo of an
-- acquisition and the forced release.
--
-- KEYS[1] lock: a string with the token of its holder
-- ARGV[1] token
-- ARGV[2] PUBLISH or SPUBLISH, ARGV[3] channel of the lock
--
-- Reply   nil: the token does not hold the lock; nothing changed
--         integer: the lock is free; how many subscribers were told, -1 if the
--         server refused the message
--
-- Cost: 3 commands. Works on a server that is out of memory. Idempotent: on a
-- lock of somebody else it does nothing.
--@include tell
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return false
end
redis.call('del', KEYS[1])
return tell(ARGV[2], ARGV[3])
