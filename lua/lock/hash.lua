-- Fragment: the hash of a re-entrant lock, as lock/acquire.lua describes it. counter is the key of
-- the fencing tokens, or nil.
--@needs key owner lease count me floor counter
--@include shared/next_token

-- issue issues the next fencing token.
local function issue()
  return nextToken(counter, floor == '1')
end

-- issued returns the last fencing token, which is that of the owner of the lock. It fails where issue
-- would, because the key of the tokens may hold something else, and changes nothing.
local function issued()
  local value = counter and redis.call('get', counter)
  if value and not string.match(value, '^-?%d+$') then
    redis.call('incr', counter)
  end
  return value
end

-- take makes the owner hold a free lock. Commands that the server may refuse (no memory, a token
-- key of another type) go first.
local function take()
  local token = counter and issue()
  if me == '' then
    redis.call('hset', key, owner, '1')
  else
    redis.call('hset', key, owner, 1, owner .. '@', 1, owner .. '@' .. me, 1)
  end
  redis.call('pexpire', key, lease)
  return token
end

-- enter makes the owner of a held lock hold it count times. It returns false and the holder
-- if the lock is somebody else's, else true and the reply of the script.
local function enter(ttl)
  local held = redis.call('hmget', key, owner, owner .. '@', owner .. '@' .. me, 'mode')
  if held[4] then
    return true, redis.error_reply('WRONGTYPE the key holds a read/write lock')
  end
  if not held[1] then
    if count > 1 then
      --@include shared/only_master
      return true, redis.error_reply('LATCHKEY_GONE the hold is over')
    end
    --@include shared/shape_hash
    local foreign, holder = isForeign(key)
    if foreign then
      return true, redis.error_reply('WRONGTYPE the key holds a hash that is no lock')
    end
    return false, holder
  end
  local guests = tonumber(held[2] or 0)
  local mine = me == '' and held[1] - guests or tonumber(held[3] or 0)
  if count > 1 and mine < 1 then
    --@include shared/only_master
    return true, redis.error_reply('LATCHKEY_GONE the hold is over, others of the same owner go on')
  end
  local token = issued() or counter and issue()
  local more = count - mine
  if me == '' then
    redis.call('hset', key, owner, held[1] + more)
  else
    redis.call('hset', key, owner, held[1] + more, owner .. '@', guests + more, owner .. '@' .. me, count)
  end
  -- A re-entry never shortens the lease of the outer hold.
  if ttl < lease then
    redis.call('pexpire', key, lease)
  end
  return true, token
end
