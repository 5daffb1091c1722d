-- Fragment: which kind of object the number under a name is. Semaphores, permit semaphores and latches
-- are all numbers, in Redisson's format.
--
--   kind  string: 'semaphore', 'permit semaphore' or 'latch', written by the script that sets the
--         number, with the same expiry. Redisson does not know it: without it, the number may be
--         any of them.
--   mine  the kind that the script is for
--
-- A semaphore is gone when its number is gone, even if Redisson has left this key behind. A latch is
-- open then.
--@needs kind mine

-- numberIn returns the number that a value is, nil for a value that the server cannot add to, or that Lua cannot
-- represent.
local function numberIn(value)
  local n = (value == '0' or string.find(value, '^-?[1-9]%d*$')) and tonumber(value)
  return n and math.abs(n) < 2 ^ 53 and n or nil
end

-- otherKind returns an error if the name belongs to another kind. there says whether the number exists. The
-- second value is what the key says, false if there is none.
local function otherKind(there)
  local found = redis.pcall('get', kind)
  if type(found) == 'table' then
    return found
  elseif found and found ~= mine and (there or found == 'latch') then
    --@include shared/only_master
    return redis.error_reply('WRONGTYPE LATCHKEY_KIND a ' .. found .. ', not a ' .. mine)
  end
  return nil, found
end

-- markKind notes the kind of a number that has just been set, to expire in ttl ms, or never with ''.
local function markKind(ttl)
  if ttl == '' then
    redis.call('set', kind, mine)
  else
    redis.call('set', kind, mine, 'px', ttl)
  end
end
