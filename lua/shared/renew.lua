-- Renew many holds of any kind.
--
--@keys (key)...
--@args (where owner part lease)...
--
--   where  'hash' or 'string': the type of the lock
--   part   of the owner: '' or the name of a guest's part, which lock/acquire.lua calls me
--   lease  in ms; negative: the script only checks the hold
--
-- Reply   array: 1 renewed, 0 not held by that owner or without that part, -1 unknown: the
--         server returned an error
--
-- A renewal never creates a key and never shortens its remaining time. A bad key (of
-- another type) does not affect the others: its lock counts as not held.
--
-- Cost: 2 commands for each hold, 3 if its time must be raised. Works on a server
-- that is out of memory. Idempotent.
local function holds()
  local reply = where == 'string' and redis.pcall('get', key)
    or where == 'hash' and redis.pcall('hmget', key, owner, owner .. '@', owner .. '@' .. part)
  if type(reply) == 'table' and reply['err'] then
    return string.find(reply['err'], 'WRONGTYPE', 1, true) and 0 or -1
  elseif where == 'string' then
    return reply == owner and 1 or 0
  end
  local mine = part == '' and (reply[1] or 0) - (reply[2] or 0) or tonumber(reply[3] or 0)
  return mine > 0 and 1 or 0
end

local renewed = {}
for i = 1, #KEYS do
  key = KEYS[i]
  where, owner, part, lease = unpack(ARGV, 4 * i - 3, 4 * i)
  renewed[i] = holds()
  if renewed[i] == 0 then
    --@include shared/only_master
  elseif renewed[i] == 1 and redis.call('pttl', key) < tonumber(lease) then
    redis.call('pexpire', key, lease)
  end
end
return renewed
