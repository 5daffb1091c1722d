-- Report the leader of an election.
--
-- KEYS[1] lock of the election, KEYS[2] record of the leader, KEYS[3] fencing counter (see
-- election/announce.lua)
--
-- Reply   nil: nobody leads, or the leader has not announced itself yet
--         list of strings: owner, term, since (ms), for how many ms, ms until its lease ends
--         (-1 without an expiry), value, label of its client or ''
--         error WRONGTYPE: a key is another kind of object
--
-- Cost: 5 commands, 3 if nobody leads. Idempotent: changes nothing.
local lock, record, counter = KEYS[1], KEYS[2], KEYS[3]
--@include shared/clock
--@include election/leads
local there = redis.call('hmget', record, 'owner', 'term', 'since', 'value', 'label')
if not leads(there[1], there[2]) then
  local key = record
  --@include shared/only_master
  return false
end
local age = math.max(0, clock() - there[3])
return {there[1], there[2], there[3], string.format('%.0f', age), string.format('%.0f', redis.call('pttl', lock)), there[4], there[5] or ''}
