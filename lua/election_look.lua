-- Tell who leads.
--
-- KEYS[1] lock of the election, KEYS[2] record of the leader (see election_announce.lua)
--
-- Reply   nil: nobody, or a leader that has not announced itself yet
--         list of strings: owner, term, since (ms), for how many ms, ms until its lease ends
--         (-1 without an expiry), value
--         error WRONGTYPE: a key is another kind of object
--
-- Cost: 4 commands. Idempotent: changes nothing.
local there = redis.call('hmget', KEYS[2], 'owner', 'term', 'since', 'value')
if redis.call('hexists', KEYS[1], there[1] or '') == 0 then
  return false
end
local time = redis.call('time')
local age = math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - there[3])
return {there[1], there[2], there[3], string.format('%.0f', age), string.format('%.0f', redis.call('pttl', KEYS[1])), there[4]}
