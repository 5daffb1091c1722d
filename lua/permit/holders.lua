-- List a piece of the held permits of a semaphore.
--
--@keys key held kind
--@args first last
--
--   first, last  indexes of the piece, in the order in which the leases end
--
-- Reply   array: the number of ids, including those whose lease is over, and for each id of the piece
--         whose lease is not over: the id, remaining ms of its lease (-1 without an end)
--         error LATCHKEY_UNSET: see semaphore/state.lua
--
-- Cost: 6 commands; O(log p + length of the piece) for p ids. Idempotent: changes nothing.
local publish, channel
--@include permit/state
local free, wrong = look()
if not free then
  return wrong or unset()
end
--@include shared/only_master
local reply = {redis.call('zcard', held)}
local ids = redis.call('zrange', held, first, last, 'withscores')
for i = 1, #ids, 2 do
  if not lapsed(ids[i + 1]) then
    local score = tonumber(ids[i + 1])
    reply[#reply + 1] = ids[i]
    reply[#reply + 1] = score == never and -1 or score - clock()
  end
end
return reply
