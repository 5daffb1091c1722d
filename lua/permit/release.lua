-- Give back permits by their ids, no matter which client acquired them.
--
--@keys key held note kind queue alive grants
--@args number publish channel clients suffix counts waits firstID...
--
--   held     ids (see permit/state.lua)
--   queue, alive, grants  see permit/queue.lua
--   firstID  and on: ids, as bytes
--
-- Reply   string with a letter for each id: R released, E its lease was over, U unknown
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see shared/op.lua
--
-- A permit that has expired, but was not put back yet, becomes available too. Free permits then go to
-- the front of the queue.
--
-- Cost: 1 command for each id and about 12, about 16 more for each waiter that is granted its permits,
-- 64 at most. Works on a server that is out of memory.
-- Idempotent: the operation is noted.
counts = counts == '1'
--@include shared/op
--@include permit/serve

local done, past = recall()
if done or past then
  return past or done
end
local free, wrong = look()
if wrong then
  return wrong
end
local scores = redis.call('zmscore', held, unpack(ARGV, firstID))
room()
local report, back = {}, 0
for i, score in ipairs(scores) do
  if not score then
    report[i] = 'U'
  else
    local gone = redis.call('zrem', held, ARGV[firstID + i - 1]) -- 0 if the id is named twice
    report[i] = gone == 0 and 'U' or lapsed(score) and 'E' or 'R'
    back = back + gone
  end
end
if free and back > 0 then
  free = redis.call('incrby', key, back)
end
local result = table.concat(report)
remember(result)
if free and back > 0 then
  pcall(serve, free, waits) -- what fails leaves the permits free
end
return result
