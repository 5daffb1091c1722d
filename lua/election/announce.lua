-- Write the announcement of the leader of an election, and notify observers.
--
-- KEYS[1] lock of the election, a hash (see lock/acquire.lua): its owner is the leader
-- KEYS[2] record of the leader, a hash: owner, term, since (ms), revision, value, label of its client
-- KEYS[3] fencing counter of the lock
-- ARGV[1] owner
-- ARGV[2] its fencing token, which is the term
-- ARGV[3] revision of the value in this term, from 1 on
-- ARGV[4] value
-- ARGV[5] 'PUBLISH', or SPUBLISH
-- ARGV[6] channel of observers
-- ARGV[7] label of the client, '' if it has none
--
-- Reply   1: the value is written, or it was written before and a later revision may have followed
--         0: the owner does not lead; nothing changed
--         error WRONGTYPE: a key is another kind of object; nothing changed
--
-- The owner leads if it holds the lock and its term is the last that was counted. An acquisition
-- that is executed late, after its leader resigned, may make its owner hold the lock again, but with
-- another token. So earlier and late announcements of that leader have no effect. The term is not
-- checked if the counter was lost. The record has no expiry: it counts only while its owner leads.
--
-- Cost: 6 commands, 5 for another value of the same term. Idempotent: a revision is written once.
local lock, record, counter = KEYS[1], KEYS[2], KEYS[3]
local owner, term, revision, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include shared/tell

--@include shared/clock
--@include election/leads
if not leads(owner, term) then
  local key = record
  --@include shared/only_master
  return 0
end
local there = redis.call('hmget', record, 'owner', 'revision', 'since')
local same = there[1] == owner
if same and tonumber(there[2]) >= tonumber(revision) then
  return 1
end
local since = same and there[3] or string.format('%.0f', clock())
redis.call('hset', record, 'owner', owner, 'term', term, 'since', since, 'revision', revision, 'value', value, 'label', ARGV[7] or '')
tell(ARGV[5], ARGV[6])
return 1
