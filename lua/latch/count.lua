-- Count a latch down.
--
-- KEYS[1] count, KEYS[2] state, KEYS[3] participants (see latch/state.lua)
-- KEYS[4] note (see shared/op.lua), KEYS[5] kind (see shared/number_kind.lua)
-- ARGV[1] number of the operation
-- ARGV[2] the round, '' for the current one
-- ARGV[3] by how much
-- ARGV[4] participant, which counts once in a round, or ''
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
--
-- Reply   integer: the remaining count; 0 also if the round was open before
--         -1 the round was deleted or expired; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed; error LATCHKEY_PAST: see shared/op.lua
--
-- Waiters get a message when the count reaches zero, and only then.
--
-- Cost: at most 17 commands, 34 if Redisson or time has changed the latch. Works on a
-- server that is out of memory. Idempotent: the operation is noted.
local key, latch, done, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local number, which, n, who = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include latch/once

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
  tell(ARGV[5], ARGV[6], '0')
end
return left
