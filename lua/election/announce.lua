-- Write the announcement of the leader of an election, and notify observers.
--
--@keys lock record counter
--@args owner term revision value publish channel label=''
--
--   lock      lock of the election (see lock/acquire.lua): its owner is the leader
--   record    hash: owner, term, since (ms), revision, value, label of its client
--   counter   fencing counter of the lock
--   term      the fencing token of the owner
--   revision  of the value in this term, from 1 on
--   channel   of observers
--   label     of the client, '' if it has none
--
-- Reply   1: the value is written, or it was written before and a later revision may have followed
--         0: the owner does not lead; nothing changed
--
-- The owner leads if it holds the lock and its term is the last that was counted, or the counter
-- was lost. A late acquisition, after its leader resigned, may make its owner hold the lock again,
-- but with another token: so announcements of that leader have no effect. The record has no expiry:
-- it counts only while its owner leads.
--
-- Cost: 6 commands, 5 for another value of the same term. Idempotent: a revision is written once.
--@include shared/tell
--@include shared/clock
local leads = redis.call('hexists', lock, owner) == 1
local last = leads and redis.call('get', counter)
if not leads or last and last ~= term then
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
redis.call('hset', record, 'owner', owner, 'term', term, 'since', since, 'revision', revision,
  'value', value, 'label', label)
tell(publish, channel)
return 1
