-- Give back one permit with an id, or give up an acquisition: its entry leaves the queue,
-- and the permits that it may have been granted go back.
--
-- KEYS[1] permits, KEYS[2] ids (see permit/state.lua)
-- KEYS[3] queue, KEYS[4] alive, KEYS[5] grants (see permit/queue.lua)
-- KEYS[6] kind (see shared/number_kind.lua)
-- KEYS[7] mark of an acquisition that was given up, for leases without an end only
-- ARGV[1] id, as bytes, of the permit to give back; '' for all permits of the entry
-- ARGV[2] entry that leaves the queue, or ''
-- ARGV[3] ms for which to keep the mark, '' for no mark
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6], ARGV[7] prefix and suffix of the channels of clients
-- ARGV[8] '1' if the server counts all listeners of these channels
-- ARGV[9] channel on which the clients of this library also listen that listen on the first
--
-- Reply   nil: no permit was held, or the leases were over
--         integer: given back; how many subscribers of the channel received the message, 0 if somebody
--         is in the queue, -1 if the server refused the message
--         error WRONGTYPE: the key is another kind of object, to which nothing can be given back;
--         the permits are no longer held; or a key beside it is, and they are given back
--
-- Free permits then go to the front of the queue. If nobody is in the queue, the channel gets a
-- message for listeners that do not use the queue.
--
-- Cost: about 10 commands, about 16 more for each waiter that is granted its permits, 64 at most;
-- O(log w + n log p). Works on a server that is out of memory. Idempotent: ids are used once.
local key, held, queue, alive, grants, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local publish, channel, clients, suffix, counts = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1'
--@include permit/serve

local ids, live = {ARGV[1]}, false
if ARGV[1] == '' then
  ids = idsOf(ARGV[2])
end
for _, score in ipairs(redis.call('zmscore', held, unpack(ids))) do
  live = live or score and not lapsed(score)
end
local back = redis.call('zrem', held, unpack(ids)) -- lets the rest run on a server that is out of memory
if ARGV[3] ~= '' then
  redis.call('set', KEYS[7], '1', 'px', ARGV[3])
end
local free, wrong = look()
if free and back > 0 then
  free = redis.call('incrby', key, back)
end
local left = ARGV[2] ~= '' and drop({ARGV[2]}) or 0
if wrong then
  return wrong
end
local receivers = 0
if free and back + left > 0 then
  receivers = serve(free, ARGV[9])
end
if live then
  return receivers
end
return false
