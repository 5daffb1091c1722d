-- Fragment: ends the part that this client has in a re-entrant lock, which stays taken for keepFor ms.
--
-- If nobody else is in the lock, its owner is <owner>:kept for that time, but never for longer than its
-- remaining lease. No acquisition uses that owner. If other clients of the same owner are in the lock, they
-- keep it: a guest that does not exist, <owner>@kept, replaces this client, and no time is shortened.
--
-- The script replies nil if this client has no part in the lock, and HELD if other clients of the same owner are
-- in it. Otherwise kept is the ms for which the lock stays taken, and the script is to send the message of a
-- release: waiters may rely on a longer lease, and learn how long to wait when they retry.
--@needs key owner me keepFor
--@include shared/time_left

-- stay returns the reply of the script, or for how many ms the lock stays taken.
local function stay(rest)
  local held = redis.call('hmget', key, owner, owner .. '@', owner .. '@' .. me, owner .. '@kept')
  if not held[1] then
    return false
  end
  local guests, kept = tonumber(held[2] or 0), tonumber(held[4] or 0)
  local mine = me == '' and held[1] - guests or tonumber(held[3] or 0)
  if mine < 1 then
    return false
  end
  redis.call('hdel', key, '') -- lets the rest run on a server that is out of memory
  local others = held[1] - mine - kept
  if others > 0 then
    local part = me ~= '' and mine or 0
    redis.call('hset', key, owner, others + 1, owner .. '@', guests - part - kept + 1, owner .. '@kept', 1)
    if me ~= '' then
      redis.call('hdel', key, owner .. '@' .. me)
    end
    return 'HELD'
  end
  local ttl = timeLeft(rest, kept > 0)
  redis.call('hset', key, owner .. ':kept', 1)
  redis.call('pexpire', key, ttl)
  redis.call('hdel', key, owner, owner .. '@', owner .. '@kept', owner .. '@' .. me)
  return ttl
end

local kept = stay(tonumber(keepFor))
if kept == 'HELD' then
  return redis.status_reply(kept)
end
if not kept then
  --@include shared/only_master
  return false
end
