-- List a piece of the queue for permits with ids.
--
-- KEYS[1] queue, KEYS[2] alive (see permit/queue.lua)
-- ARGV[1] first and ARGV[2] last index of the piece
--
-- Reply   array of the length of the queue and, for each entry of the piece: the id of the first of
--         its permits, µs since it came, ms for which it counts as alive
--
-- Cost: O(log w + length of the piece). Writes nothing.
local queue, alive = KEYS[1], KEYS[2]
--@include shared/clock
clock()
local entries = redis.call('zrange', queue, ARGV[1], ARGV[2], 'withscores')
local reply = {redis.call('zcard', queue)}
for i = 1, #entries, 2 do
  local left = tonumber(redis.call('zscore', alive, entries[i]) or 0) - micros / 1000
  reply[#reply + 1] = string.sub(entries[i], -32)
  reply[#reply + 1] = math.max(0, micros - tonumber(entries[i + 1]))
  reply[#reply + 1] = math.ceil(math.max(0, left))
end
return reply
