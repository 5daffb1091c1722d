-- Report the leader of an election.
--
--@keys lock record counter
--
-- The keys are those of election/announce.lua.
--
-- Reply   nil: nobody leads, or the leader has not announced itself yet
--         list of strings: owner, term, since (ms), for how many ms, ms until its lease ends
--         (-1 without an expiry), value, label of its client or ''
--
-- Cost: 5 commands, 3 if nobody leads. Idempotent: changes nothing.
--@include shared/clock
local there = redis.call('hmget', record, 'owner', 'term', 'since', 'value', 'label')
local leads = redis.call('hexists', lock, there[1] or '') == 1
local last = leads and redis.call('get', counter)
if not leads or last and last ~= there[2] then
  local key = record
  --@include shared/only_master
  return false
end
local age, left = math.max(0, clock() - there[3]), redis.call('pttl', lock)
return {there[1], there[2], there[3], string.format('%.0f', age), string.format('%.0f', left), there[4], there[5] or ''}
