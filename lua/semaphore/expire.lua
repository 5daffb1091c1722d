-- Set or remove the expiry of a semaphore, or delete it.
--
--@keys key note kind firstOther...
--@args number ms ofKind publish=nil channel=nil
--
--   firstOther  and on: the other keys of the semaphore; those of its queue only to delete it
--   ms          '' for no expiry, '0' to delete it
--   ofKind      what the key kind says of it
--   publish, channel  only to delete it
--
-- Reply   integer: 1 done, 0 there is no semaphore
--
-- If it is deleted, waiters get a message and look at the semaphore again.
--
-- Cost: a command for each key, and 5; at most 8 to delete it. Works on a full server. Idempotent:
-- the operation is noted, so a late copy does not delete the next semaphore.
--@include semaphore/state
mine = ofKind
--@include shared/op_once

if ms == '0' then
  redis.call('del', key, kind, unpack(KEYS, firstOther)) -- also what a semaphore that is gone has left
end
if not free then
  return nothing()
end
room()
remember(1)
if ms == '0' then
  tell(publish, channel, '0')
  return 1
end
for _, each in ipairs({key, kind, unpack(KEYS, firstOther)}) do
  if ms == '' then
    redis.call('persist', each)
  else
    redis.call('pexpire', each, ms)
  end
end
return 1
