-- Arrive at a barrier.
--
--@keys key waiting past note
--@args number party wanted lease publish channel over wantedStage
--
--   wanted       number of parties
--   over         the last generation that this client knows to be over, or 0
--   wantedStage  enter for the first arrival of a Do, '' for an Await
--
-- Reply   list of strings (see barrier/state.lua). The index counts the arrivals of the generation from
--         0. The last arrival completes the generation: done. busy: the parties of a Do run their
--         functions; the arrival is not counted, and may be tried again when the generation is over
--         error LATCHKEY_PARTIES n: the barrier has n parties; the arrival is not counted
--         error LATCHKEY_MIXED: some parties call Do and others Await; the arrival is not counted
--
-- The first arrival begins a generation. The waiting parties get a message when the generation
-- ends, and when a party arrives whose lease ends before theirs. A generation that is still in
-- progress here, but that this client knows to be over, is lost: a failover brought it back.
--
-- Cost: at most 19 commands, 30 if it finds that a party has crashed; O(log n) for n waiting
-- parties. Idempotent: the operation is noted, and a retry extends the lease of a party.
wanted, over = tonumber(wanted), tonumber(over)
--@include shared/op
--@include barrier/state

-- save writes the generation.
local function save()
  local fields = {'generation', integer(generation), 'parties', integer(parties), 'arrived', integer(arrived)}
  if stage ~= '' then
    fields[7], fields[8] = 'stage', stage
  end
  redis.call('hset', key, unpack(fields))
end

-- join adds the party to the generation.
local function join()
  redis.call('zadd', waiting, leaseEnd(lease), party)
  outlive(key, lease)
  outlive(waiting, lease)
end

-- run completes the first generation of a Do, and begins the second.
local function run()
  local second = math.max(clock() * 1000, generation + 1)
  record('done', integer(second))
  generation, arrived, stage = second, 0, 'run'
  save()
  join()
  tell(publish, channel, '1')
end

local before, ended = recall()
if ended then
  return ended
end
local wrong = sync()
if wrong then
  return wrong
end
if before then
  if open() then
    redis.call('zadd', waiting, 'xx', 'gt', leaseEnd(lease), party)
  end
  local of, index = string.match(before, '^(%d+) (%d+)$')
  return report(of, index)
end
if parties > 0 and parties ~= wanted then
  --@include shared/only_master
  return redis.error_reply('LATCHKEY_PARTIES ' .. integer(parties))
end
if open() and generation <= over then
  finish('lost')
end
if stage == 'run' then
  return {'busy', '', integer(generation), '', integer(untilFirstEnd())}
end
if arrived > 0 and stage ~= wantedStage then
  return redis.error_reply('LATCHKEY_MIXED Do and Await do not meet')
end
if arrived == 0 then
  generation, parties, stage = math.max(clock() * 1000, generation + 1, over + 1), wanted, wantedStage
end
local of, index = integer(generation), integer(arrived)
remember(of .. ' ' .. index)
if arrived == 0 then
  redis.call('del', waiting)
end
arrived = arrived + 1
if arrived == parties and stage == 'enter' then
  run()
  return report(of, index)
end
save()
if arrived == parties then
  finish('done')
else
  local first = redis.call('zrange', waiting, 0, 0, 'withscores')
  join()
  if first[2] and tonumber(first[2]) > tonumber(leaseEnd(lease)) then
    tell(publish, channel, '0') -- the waiting parties must look when this lease ends
  end
end
return report(of, index)
