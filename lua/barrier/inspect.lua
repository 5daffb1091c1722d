-- Report the state of a barrier.
--
--@keys key waiting
--@args most
--
--   most  how many parties to list at most
--
-- Reply   list of strings: generation, parties, arrived, then each party of the generation, the
--         remaining ms of its lease, and 1 if it runs its function, else 0; in the order in
--         which the leases end
--
-- Cost: at most 5 commands, and one for each of m listed parties in the stage run; O(m log n).
-- Changes nothing: a generation with a crashed party stays until a script breaks it.
local past, publish, channel
--@include barrier/state
local wrong = read()
if wrong then
  return wrong
end
--@include shared/only_master
local reply = {integer(generation), integer(parties), integer(arrived)}
if open() then
  local found = redis.call('zrange', waiting, 0, tonumber(most) - 1, 'withscores')
  for i = 1, #found, 2 do
    local party, ends = found[i], found[i + 1]
    if ends == 'inf' then
      break
    end
    local runs = stage == 'run' and not redis.call('zscore', waiting, returned(party))
    reply[#reply + 1] = party
    reply[#reply + 1] = integer(math.max(0, tonumber(ends) - clock()))
    reply[#reply + 1] = runs and '1' or '0'
  end
end
return reply
