-- Fragment: ends what this client has of a re-entrant lock, which stays taken for ARGV[2] ms. It needs the
-- locals key, owner and me.
--
-- A lock that nobody else is in has the owner <owner>:kept then, as which nobody acquires, for
-- that time, and never for longer than it had. If others of the same owner are in, it stays theirs: a part
-- of a guest that does not exist, <owner>@kept, stands for this client, and no time is shortened.
--
-- The script replies nil if this client has no part in the lock, and HELD if others of the same owner are in. Else
-- the local left is for how many ms the lock stays taken.
--@include time_left

-- stay returns what the script replies, or for how many ms the lock stays taken.
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
  redis.call('hdel', key, '') -- lets the rest pass on a server at its limit
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

local left = stay(tonumber(ARGV[2]))
if left == 'HELD' then
  return redis.status_reply(left)
end
if not left then
  return false
end
