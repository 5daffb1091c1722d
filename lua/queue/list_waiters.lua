-- List a piece of the waiters for a mutex, a lock, or to write.
--
--@keys queue writers=nil
--@args first last
--
--   queue    see queue/hand_over.lua
--   writers  see rw/state.lua; left out if they cannot be read
--   first, last  indexes of the piece
--
-- Reply   array of the length of the longer of both, and for each waiter of the piece: owner, µs since
--         it came (-1 if that is not known), ms for which it counts as alive (nil if that is not known)
--
-- An owner that is in both is listed once, in the order of the queue; the other writers follow.
--
-- Cost: O(log n + length of the piece). Writes nothing.
--@include shared/clock
clock()
local reply, listed = {0}, {}

local function list(owner, since, alive)
  if not listed[owner] then
    listed[owner] = true
    reply[#reply + 1] = owner
    reply[#reply + 1] = since
    reply[#reply + 1] = alive or false
  end
end

local entries = redis.call('zrange', queue, first, last, 'withscores')
for i = 1, #entries, 2 do
  local owner = string.match(entries[i], '^%S+') or entries[i]
  if string.sub(owner, 1, 1) ~= '~' then -- see queue/poller.lua
    local alive = writers and redis.call('zscore', writers, owner)
    list(owner, math.max(0, micros - tonumber(entries[i + 1])), alive and math.max(0, tonumber(alive) - clock()))
  end
end
local noted = writers and redis.call('zrange', writers, first, last, 'withscores') or {}
for i = 1, #noted, 2 do
  local alive = tonumber(noted[i + 1]) - clock()
  if alive > 0 then
    list(noted[i], -1, alive)
  end
end
reply[1] = math.max(redis.call('zcard', queue), writers and redis.call('zcard', writers) or 0)
return reply
