-- Report the state of a barrier.
--
-- KEYS[1] barrier, KEYS[2] waiting (see barrier_state.lua)
-- ARGV[1] how many parties to list at most
--
-- Reply   list of strings: generation, parties, arrived, then each waiting party and the
--         remaining ms of its lease, in the order in which the leases end
--         error WRONGTYPE: the key is another kind of object
--
-- Cost: at most 4 commands; O(log n + m) for m listed parties. Writes nothing: a generation with
-- a crashed party is reported unchanged until a script that may break it runs.
local key, waiting, past, publish, channel = KEYS[1], KEYS[2], nil, nil, nil
--@include tell
--@include barrier_state
local wrong = read()
if wrong then
  return wrong
end
local reply = {integer(generation), integer(parties), integer(arrived)}
if arrived > 0 then
  local found = redis.call('zrange', waiting, 0, tonumber(ARGV[1]) - 1, 'withscores')
  for i = 1, #found, 2 do
    reply[#reply + 1] = found[i]
    reply[#reply + 1] = integer(math.max(0, tonumber(found[i + 1]) - clock()))
  end
end
return reply
