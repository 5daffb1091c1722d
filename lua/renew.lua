-- Renew many holds of any kind.
--
-- KEYS[i]     lock
-- ARGV[3i-2]  'hash' or 'string': where the owner stands
-- ARGV[3i-1]  owner
-- ARGV[3i]    lease in ms
--
-- Reply   array: 1 renewed, 0 not held by that owner
--
-- A renewal never creates a key and never shortens what it has. One bad key (of
-- another type) does not spoil the rest: it is simply not held.
--
-- Cost: 2 commands for each hold, 3 if its time must be raised. Works on a server
-- that is out of memory. Idempotent.
local renewed = {}
for i, key in ipairs(KEYS) do
  local owner, lease = ARGV[3 * i - 1], tonumber(ARGV[3 * i])
  local mine
  if ARGV[3 * i - 2] == 'hash' then
    mine = redis.pcall('hexists', key, owner) == 1
  else
    mine = redis.pcall('get', key) == owner
  end
  renewed[i] = mine and 1 or 0
  if mine and redis.call('pttl', key) < lease then
    redis.call('pexpire', key, lease)
  end
end
return renewed
