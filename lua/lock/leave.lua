-- Fragment: leave(count, raise) gives back a part of a re-entrant lock or the whole of it, as lock/release.lua
-- describes it. It returns false if this client has no part in the lock, 'HELD' if the owner still holds it, 'FREE'
-- if it has become free.
--@needs key owner me
local function leave(count, raise)
  local held = redis.call('hmget', key, owner, owner .. '@', owner .. '@' .. me, 'mode')
  if not held[1] then
    return false
  end
  if count < 0 then
    --@include shared/shape_hash
    return not (held[4] or isForeign(key)) and redis.call('del', key) and 'FREE'
  end
  local guests = tonumber(held[2] or 0)
  local mine = me == '' and held[1] - guests or tonumber(held[3] or 0)
  if mine < 1 then
    return false
  end
  local less = mine - count
  local total = held[1] - less
  if total < 1 then
    redis.call('del', key)
    return 'FREE'
  end
  redis.call('hdel', key, '') -- lets the rest run on a server that is out of memory
  redis.call('hset', key, owner, total)
  if me ~= '' then
    redis.call('hset', key, owner .. '@', guests - less, owner .. '@' .. me, count)
    if count == 0 then
      redis.call('hdel', key, owner .. '@' .. me)
    end
    if guests == less then
      redis.call('hdel', key, owner .. '@')
    end
  end
  if raise > 0 and redis.call('pttl', key) < raise then
    redis.call('pexpire', key, raise)
  end
  return 'HELD'
end
