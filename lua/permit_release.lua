-- Give back permits by their ids, no matter which client acquired them.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] kind (see number_kind.lua)
-- ARGV[1] number of the operation
-- ARGV[2] PUBLISH or SPUBLISH, ARGV[3] channel
-- ARGV[4...] ids, as bytes
--
-- Reply   string with a letter for each id: R released, E its lease was over, U unknown
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_PAST: the operation is over
--
-- A permit that has expired, but was not put back yet, becomes available too.
--
-- Cost: 2 commands for each id and about 7. Works on a server that is out of memory.
-- Idempotent: the operation is noted.
local key, held, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local number, publish, channel = ARGV[1], ARGV[2], ARGV[3]
--@include tell
--@include op
--@include sem_state
--@include permit_state

local done, past = recall()
if done or past then
  return past or done
end
local free, wrong = look()
if wrong then
  return wrong
end
local scores = redis.call('zmscore', held, unpack(ARGV, 4))
room()
local report, back = {}, 0
for i, score in ipairs(scores) do
  if not score then
    report[i] = 'U'
  else
    local gone = redis.call('zrem', held, ARGV[i + 3]) -- 0 if the id is named twice
    report[i] = gone == 0 and 'U' or lapsed(score) and 'E' or 'R'
    back = back + gone
  end
end
if free and back > 0 then
  offer(redis.call('incrby', key, back))
end
local result = table.concat(report)
remember(result)
return result
