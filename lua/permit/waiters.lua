-- List a piece of the queue for permits with ids.
--
--@keys queue alive
--@args first last
--
--   first, last   indexes of the piece
--
-- Reply   array of the length of the queue and, for each entry of the piece: the id of the first of
--         its permits, µs since it came, ms for which it counts as alive
--
-- Cost: O(log w + length of the piece). Writes nothing.
--@include shared/clock
clock()
local entries = redis.call('zrange', queue, first, last, 'withscores')
local reply = {redis.call('zcard', queue)}
for i = 1, #entries, 2 do
  local left = tonumber(redis.call('zscore', alive, entries[i]) or 0) - micros / 1000
  reply[#reply + 1] = string.sub(entries[i], -32)
  reply[#reply + 1] = math.max(0, micros - tonumber(entries[i + 1]))
  reply[#reply + 1] = math.ceil(math.max(0, left))
end
return reply
