-- Set or remove the expiry of a semaphore.
--
-- KEYS[1] permits, KEYS[2...] what stands beside it
-- ARGV[1] ms, or '' for none
--
-- Reply   integer: 1 done, 0 there is none
--
-- Cost: a command for each key. Works on a server that is out of memory. Idempotent.
local there = redis.call('exists', KEYS[1])
for _, key in ipairs(KEYS) do
  if ARGV[1] == '' then
    redis.call('persist', key)
  else
    redis.call('pexpire', key, ARGV[1])
  end
end
return there
