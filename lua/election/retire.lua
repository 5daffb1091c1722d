-- Remove the announcement of a leader that no longer leads, and notify observers.
--
--@keys key
--@args owner publish channel
--
--   key      record of the leader (see election/announce.lua)
--   channel  of observers
--
-- Reply   1: removed
--         0: that owner has no record; nothing changed
--
-- Cost: 3 commands. Works on a full server. Idempotent: the record of another leader stays.
--@include shared/tell

if redis.call('hget', key, 'owner') ~= owner then
  --@include shared/only_master
  return 0
end
redis.call('del', key)
tell(publish, channel)
return 1
