-- List a piece of the queue of a fair lock.
--
--@keys lock queue deadlines notes tokens
--@args first last
--
--   queue, deadlines, notes  see fair/notes.lua
--   first, last  indexes of the piece
--
-- Reply   array of the length of the queue and, for each waiter of the piece: owner, µs
--         since it came (-1 if only Redisson knows), ms for which it counts as alive
--
-- Cost: O(length of the piece). Writes nothing.
local stale
--@include shared/clock
--@include fair/notes
clock()
local reply = {redis.call('llen', queue)}
local waiters = redis.call('lrange', queue, first, last)
if #waiters == 0 then
  return reply
end
local texts = redis.call('hmget', notes, unpack(waiters))
for i, waiter in ipairs(waiters) do
  local came = since(texts[i])
  table.insert(reply, waiter)
  table.insert(reply, came and micros - came or -1)
  table.insert(reply, expiry(waiter, texts[i]) - now)
end
return reply
