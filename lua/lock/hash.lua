-- Fragment: the hash of a re-entrant lock, as lock/acquire.lua describes it. counter is the key of
-- the fencing tokens, or nil.
--@needs key owner lease count me floor counter
--@include shared/next_token

-- lastToken returns the last fencing token, which is that of the owner of the lock. It fails where nextToken
-- would, because the key of the tokens may hold something else, and changes nothing.
local function lastToken()
  local value = counter and redis.call('get', counter)
  if value and not string.match(value, '^-?%d+$') then
    redis.call('incr', counter)
  end
  return value
end

-- enter makes the owner hold the lock count times, if the lock is free (ttl is -2) or the owner's. It returns
-- true and the reply of the script, or false and the holder. Commands that the server may refuse (no memory, a
-- token key of another type) go first. A re-entry never shortens the lease of the outer hold.
local function enter(ttl)
  local held = ttl == -2 and {} or redis.call('hmget', key, owner, owner .. '@', owner .. '@' .. me, 'mode')
  if held[4] then
    return true, redis.error_reply('WRONGTYPE the key holds a read/write lock')
  end
  local total, guests = tonumber(held[1] or 0), tonumber(held[2] or 0)
  local mine = me == '' and total - guests or tonumber(held[3] or 0)
  if count > 1 and mine < 1 then
    --@include shared/only_master
    return true, redis.error_reply('LATCHKEY_GONE the hold is over')
  end
  if ttl ~= -2 and not held[1] then
    --@include shared/shape_hash
    local foreign, holder = isForeign(key)
    if foreign then
      return true, redis.error_reply('WRONGTYPE the key holds a hash that is no lock')
    end
    return false, holder
  end
  local token = held[1] and lastToken() or counter and nextToken(counter, floor == '1')
  local more = count - mine
  redis.call('hset', key, owner, total + more)
  if me ~= '' then
    redis.call('hset', key, owner .. '@', guests + more, owner .. '@' .. me, count)
  end
  if ttl < lease then
    redis.call('pexpire', key, lease)
  end
  return true, token
end
