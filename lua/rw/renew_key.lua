-- Renew one hold of a read/write lock in one of its keys, when the keys are not all on one
-- node because their slot migrates.
--
--@keys key
--@args what field lease number
--
--   key     lock, leases or notes (see rw/state.lua), or a lease key
--   what    which of them: 'lock', 'leases', 'notes' or 'lease key'
--   field   of the hold: <owner> or <owner>:write
--   number  for notes: of the read ownership
--
-- Reply   array: 1 renewed, 0 the lock or the notes do not have the hold, -1 unknown: the
--         server returned an error
--
-- A hold is renewed when the replies for all of its keys say so, the lock last: a hold that is
-- in the lock then was in it all the time. The script does not create a lease that is not noted.
--
-- Cost: at most 4 commands. Works on a server that is out of memory. Idempotent: a lease
-- is never shortened.
lease = tonumber(lease)
--@include shared/clock

local function holds()
  local state = redis.pcall('hget', key, field)
  if type(state) == 'table' then
    return string.find(state['err'], 'WRONGTYPE', 1, true) and 0 or -1
  end
  return state and (what == 'lock' or state == number) and 1 or 0
end

local state = 1
if what == 'lock' or what == 'notes' then
  state = holds()
end
if state ~= 1 then
  return {state}
end
if what == 'leases' then
  redis.call('zrem', key, '') -- lets the rest run on a server that is out of memory
  redis.call('zadd', key, 'xx', 'gt', string.format('%.0f', clock() + lease), field)
elseif what == 'lease key' and redis.call('pttl', key) == -2 then
  redis.call('del', key) -- as above
  redis.call('set', key, '1', 'px', lease)
end
local spare = what == 'leases' and 1000 or 0 -- see rw/state.lua
if redis.call('pttl', key) < lease + spare then
  redis.call('pexpire', key, lease + spare)
end
return {1}
