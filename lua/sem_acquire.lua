-- Acquire permits of a semaphore, all or none (Redisson RSemaphore).
--
-- KEYS[1] permits, KEYS[2] reservation (see sem_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] channel
-- KEYS[5] total (see sem_state.lua)
-- ARGV[1] client, ARGV[2] number of the operation
-- ARGV[3] how many
-- ARGV[4] ms for which they are to be kept for this operation if there are not enough,
--         '' if it has not waited for long
-- ARGV[5] PUBLISH or SPUBLISH
--
-- Reply   status OK: acquired
--         integer: refused; ms after which to ask again, -1 if that is not known
--         error LATCHKEY_UNSET: nobody has set the permits; nothing changed
--         error LATCHKEY_PAST: the operation was given up; nothing changed
--
-- Who waits for more than there are in all keeps nobody from anything.
--
-- Who has been waiting for long may have one reservation: until it is granted, gives up
-- or shows no sign of life, others get only what is left beside it.
--
-- Cost: 5 commands. Idempotent: the operation is noted.
local key, reserve, note, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, number, n, publish = ARGV[1] .. ':' .. ARGV[2], ARGV[2], tonumber(ARGV[3]), ARGV[5]
--@include tell
--@include op
--@include sem_state

local done, past = recall()
if done or past then
  return past or redis.status_reply('OK')
end
local free, wrong = look()
if not free then
  return wrong or unset()
end
local who, kept = reserved()
local mine = who == me
if mine then
  kept = 0
end
if free >= n + (kept or 0) then
  redis.call('decrby', key, n)
  remember(n)
  if mine then
    redis.call('del', reserve)
    announce(free - n) -- to those from whom they were kept
  end
  return redis.status_reply('OK')
end
if ARGV[4] ~= '' and (mine or not who) and n <= tonumber(redis.call('get', KEYS[5]) or n) then
  redis.call('set', reserve, me .. ' ' .. n, 'px', ARGV[4])
elseif who and free >= n then
  return redis.call('pttl', reserve)
end
return -1
