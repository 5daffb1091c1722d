-- Acquire permits of a semaphore, all or none (Redisson RSemaphore).
--
-- KEYS[1] permits, KEYS[2] reservation (see sem_reserve.lua), KEYS[3] note (see op.lua)
-- KEYS[4] total (see sem_state.lua), KEYS[5] kind (see number_kind.lua)
-- ARGV[1] client, ARGV[2] number of the operation
-- ARGV[3] how many
-- ARGV[4] ms for which permits are to be kept for this operation if there are not enough,
--         '' if it has not waited long
-- ARGV[5] PUBLISH or SPUBLISH, ARGV[6] channel
--
-- Reply   status OK: acquired
--         array: refused; ms after which to retry, -1 if that is not known; how many permits are
--         available, and how many there are in total, -1 if that is not known
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_UNSET: nobody has set the permits; nothing changed
--         error LATCHKEY_PAST: the operation was given up; nothing changed
--
-- One acquisition at a time that has waited long may have its permits kept: then others get
-- only the permits in excess of these. No permits are kept for an acquisition of more than
-- there are in total, or if the total is not known.
--
-- Cost: at most 8 commands. Idempotent: the operation is noted.
local key, reserve, note, kind = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local me, number, n = ARGV[1] .. ':' .. ARGV[2], ARGV[2], tonumber(ARGV[3])
local publish, channel = ARGV[5], ARGV[6]
--@include tell
--@include op
--@include clock
--@include sem_state
--@include sem_reserve

local done, past = recall()
if done or past then
  return past or redis.status_reply('OK')
end
local free, wrong = look()
if not free then
  return wrong or unset()
end
local last = reserved()
local kept, left = keptForOthers(last)
if free >= n + kept then
  redis.call('decrby', key, n)
  local noted = redis.pcall('set', note, number .. ' ' .. n, 'px', memory)
  if noted['err'] then -- without the note nobody could give them back
    redis.call('incrby', key, n)
    return noted
  end
  if letGo(last) then
    announce(free - n) -- they are no longer kept
  end
  return redis.status_reply('OK')
end
local total = tonumber(redis.pcall('get', KEYS[4]) or nil) or -1
if ARGV[4] ~= '' and n <= total then
  keep(last, n, tonumber(ARGV[4]))
end
return {free >= n and left or -1, free, total}
