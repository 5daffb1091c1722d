-- Remove the announcement of a leader that no longer leads, and notify observers.
--
-- KEYS[1] record of the leader (see election/announce.lua)
-- ARGV[1] owner
-- ARGV[2] 'PUBLISH', or SPUBLISH
-- ARGV[3] channel of observers
--
-- Reply   1: removed
--         0: that owner has no record; nothing changed
--
-- Cost: 3 commands. Works on a server that is out of memory. Idempotent: the record of another
-- leader stays.
local key = KEYS[1]
--@include shared/tell

if redis.call('hget', key, 'owner') ~= ARGV[1] then
  --@include shared/only_master
  return 0
end
redis.call('del', key)
tell(ARGV[2], ARGV[3])
return 1
