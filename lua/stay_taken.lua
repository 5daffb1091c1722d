-- Fragment: stay(rest) ends what this client has of a re-entrant lock, which stays taken for
-- rest ms. It needs the locals key, owner and me.
--
-- A lock that nobody else is in has the owner <owner>:kept then, as which nobody acquires, for
-- rest ms, and never for longer than it had. If others of the same owner are in, it stays theirs: a part
-- of a guest that does not exist, <owner>@kept, stands for this client, and no time is shortened.
--
-- Returns false if this client has no part in the lock, 'HELD' if others of the same owner are in, else
-- for how many ms the lock stays taken.
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
  local ttl = redis.call('pttl', key)
  if ttl < 0 or kept == 0 and ttl > rest then
    ttl = rest
  end
  ttl = math.max(ttl, 1) -- in its last ms
  redis.call('hset', key, owner .. ':kept', 1)
  redis.call('pexpire', key, ttl)
  redis.call('hdel', key, owner, owner .. '@', owner .. '@kept', owner .. '@' .. me)
  return ttl
end
