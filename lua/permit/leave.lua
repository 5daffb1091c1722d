-- Give back one permit with an id, or give up an acquisition: its entry leaves the queue, and the
-- permits that it may have been granted go back.
--
--@keys key held queue alive grants kind mark=nil
--@args id entry memory publish channel clients suffix counts waits
--
--   mark    of an acquisition that was given up, for leases without an end only
--   id      of the permit to give back; '' for all permits of the entry
--   entry   leaves the queue, or ''
--   memory  ms for which to keep the mark, '' for no mark
--
-- Reply   nil: no permit was held, or the leases were over
--         integer: given back; how many subscribers of the channel received the message, 0 if somebody
--         is in the queue, -1 if the server refused the message
--         error WRONGTYPE: the key is another kind of object, to which nothing can be given back;
--         the permits are no longer held; or a key beside it is, and they are given back
--
-- Cost: about 10 commands, and the grants to waiters; O(log w + n log p). Works on a full server.
-- Idempotent: ids are used once.
--@include permit/queue

local ids, live = {id}, false
if id == '' then
  ids = idsOf(entry)
end
for _, score in ipairs(redis.call('zmscore', held, unpack(ids))) do
  live = live or score and not lapsed(score)
end
local back = redis.call('zrem', held, unpack(ids)) -- lets the rest run on a full server
if memory ~= '' then
  redis.call('set', mark, '1', 'px', memory)
end
local free, wrong = look()
if free and back > 0 then
  free = redis.call('incrby', key, back)
end
local left = entry ~= '' and drop({entry}) or 0
if wrong then
  return wrong
end
local receivers = 0
if free and back + left > 0 then
  receivers = serve(free, waits)
end
if live then
  return receivers
end
return false
