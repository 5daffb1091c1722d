-- Arrive at a barrier.
--
-- KEYS[1] barrier, KEYS[2] waiting, KEYS[3] past (see barrier_state.lua)
-- KEYS[4] note (see op.lua)
-- ARGV[1] number of the operation
-- ARGV[2] party, a name that is used once
-- ARGV[3] number of parties
-- ARGV[4] lease in ms
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
-- ARGV[7] the last generation that this client knows to be over, or 0
--
-- Reply   list of strings: how, who, generation, index, ms until the first lease ends or
--         -1 (see barrier_state.lua). The index counts the arrivals of the generation from
--         0. The last arrival completes the generation: done.
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_PARTIES n: the barrier has n parties; the arrival is not counted
--         error LATCHKEY_PAST: the operation is over
--
-- The first arrival begins a generation. The waiting parties get a message when the generation
-- ends, and when a party arrives whose lease ends before theirs. A generation that is still in
-- progress here, but that this client knows to be over, is lost: a failover brought it back.
--
-- Cost: at most 18 commands, 25 if it finds that a party has crashed; O(log n) for n waiting
-- parties. Idempotent: the operation is noted, and a retry extends the lease of a party that
-- still waits.
local key, waiting, past, note = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local number, party, wanted, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local publish, channel, over = ARGV[5], ARGV[6], tonumber(ARGV[7])
--@include tell
--@include op
--@include barrier_state

local before, ended = recall()
if ended then
  return ended
end
local wrong = sync()
if wrong then
  return wrong
end
if before then
  if arrived > 0 then
    redis.call('zadd', waiting, 'xx', 'gt', leaseEnd(lease), party)
  end
  local of, index = string.match(before, '^(%d+) (%d+)$')
  return report(of, index)
end
if parties > 0 and parties ~= wanted then
  --@include only_master
  return redis.error_reply('LATCHKEY_PARTIES ' .. integer(parties))
end
if arrived > 0 and generation <= over then
  finish('lost')
end
if arrived == 0 then
  generation, parties = math.max(clock() * 1000, generation + 1, over + 1), wanted
end
local index = integer(arrived)
remember(integer(generation) .. ' ' .. index)
if arrived == 0 then
  redis.call('del', waiting)
end
arrived = arrived + 1
redis.call('hset', key, 'generation', integer(generation), 'parties', integer(parties), 'arrived', integer(arrived))
if arrived == parties then
  finish('done')
else
  local first, mine = redis.call('zrange', waiting, 0, 0, 'withscores'), leaseEnd(lease)
  redis.call('zadd', waiting, mine, party)
  outlive(key, lease)
  outlive(waiting, lease)
  if first[2] and tonumber(first[2]) > tonumber(mine) then
    tell(publish, channel, '0') -- the waiting parties must look when this lease ends
  end
end
return report(integer(generation), index)
