-- Set or remove the expiry of a semaphore.
--
-- KEYS[1] permits
-- KEYS[2] note (see op.lua)
-- KEYS[3...] what stands beside it
-- ARGV[1] number of the operation
-- ARGV[2] ms, or '' for none
--
-- Reply   integer: 1 done, 0 there is none
--         error LATCHKEY_PAST: the operation is over
--
-- Cost: a command for each key, and 4. Works on a server that is out of memory.
-- Idempotent: the operation is noted.
local note, number = KEYS[2], ARGV[1]
--@include op
local done, past = recall()
if done or past then
  return past or tonumber(done)
end
if redis.call('exists', KEYS[1]) == 0 then
  return nothing()
end
room()
for i, key in ipairs(KEYS) do
  if i == 2 then
    remember(1)
  elseif ARGV[2] == '' then
    redis.call('persist', key)
  else
    redis.call('pexpire', key, ARGV[2])
  end
end
return 1
