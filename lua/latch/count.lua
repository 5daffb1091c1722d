-- Count a latch down.
--
--@keys key latch done note kind
--@args number which n who publish channel
--
--   which  the round, '' for the current one
--   n      by how much
--   who    participant, which counts once in a round, or ''
--
-- Reply   integer: the remaining count; 0 also if the round was open before
--         -1 the round was deleted or expired; nothing changed
--
-- Waiters get a message when the count reaches zero, and only then.
--
-- Cost: at most 17 commands, 34 if Redisson or time has changed the latch. Works on a full server.
-- Idempotent: the operation is noted.
--@include latch/state
--@include shared/op_once

if which == '' then
  which = round
end
room()
local what = fate(which)
if what ~= 'closed' then
  local answer = what == 'open' and 0 or -1
  remember(answer)
  return answer
end
if who ~= '' then
  if redis.call('sadd', done, who) == 0 then
    remember(integer(left))
    return left
  end
  if ends then -- after the round, whose end deletes it: never in the past
    redis.call('pexpireat', done, integer(ends + remembered))
  end
end
left = math.max(0, left - n)
remember(integer(left))
redis.call('decrby', key, n)
if left == 0 then
  redis.call('del', key)
  finish('open')
  tell(publish, channel, '0')
end
return left
