-- Give back permits by their ids, no matter which client acquired them.
--
--@keys key held note kind queue alive grants
--@args number publish channel clients suffix counts waits firstID...
--
--   firstID  and on: ids
--
-- Reply   string with a letter for each id: R released, E its lease was over, U unknown
--
-- A permit that has expired, but was not put back yet, becomes available too.
--
-- Cost: 1 command for each id and about 12, and the grants to waiters. Works on a full server.
-- Idempotent: the operation is noted.
--@include permit/queue
--@include shared/op_once

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
