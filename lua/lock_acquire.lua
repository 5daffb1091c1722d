-- Acquire a re-entrant lock, or enter it once more (Redisson RLock, RFencedLock).
--
-- KEYS[1] lock hash: field <owner> = hold count, of all its processes together
-- KEYS[2] fencing counter, for a fenced lock only
-- ARGV[1] owner
-- ARGV[2] lease in ms
-- ARGV[3] hold count of this client after this call; above 1 it is a re-entry
-- ARGV[4] '' if the owner was made by this client, else the name of this guest's
--         part: the id of the client and a number that it uses once
-- ARGV[5] '1' if tokens must not fall below the server's clock in ms
--
-- Reply   nil, or the fencing token as a string: acquired
--         integer: refused; remaining ms of the holder, -1 if it has no expiry
--         error LATCHKEY_GONE: a re-entry, but the hold is over; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- A guest's part is kept in <owner>@<part>, the sum of all guests in <owner>@; the
-- rest of the count belongs to the client that made the owner. Without guests the
-- hash has the one field that Redisson writes.
--
-- Cost: 3 commands when free, 2 when refused, 4 when entered again; a token adds
-- one. Idempotent: counts are absolute, the token is taken only from free to held.
local key, owner, lease, count, me = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local function token()
  local value = redis.call('incr', KEYS[2])
  if ARGV[5] == '1' then
    local now = redis.call('time')
    local floor = now[1] * 1000 + math.floor(now[2] / 1000)
    if value < floor then
      value = floor
      redis.call('set', KEYS[2], string.format('%.0f', value))
    end
  end
  return string.format('%.0f', value)
end

local ttl = redis.call('pttl', key)
if ttl == -2 then
  if count > 1 then
    return redis.error_reply('LATCHKEY_GONE the hold is over')
  end
  -- What can be refused (no memory, a token key of another type) goes first.
  local issued = KEYS[2] and token()
  if me == '' then
    redis.call('hset', key, owner, 1)
  else
    redis.call('hset', key, owner, 1, owner .. '@', 1, owner .. '@' .. me, 1)
  end
  redis.call('pexpire', key, lease)
  return issued
end

local held = redis.call('hmget', key, owner, owner .. '@', owner .. '@' .. me, 'mode')
if held[4] then
  return redis.error_reply('WRONGTYPE the key holds a read/write lock')
end
if not held[1] then
  if count > 1 then
    return redis.error_reply('LATCHKEY_GONE the hold is over')
  end
  return ttl
end

local guests = tonumber(held[2] or 0)
local mine = me == '' and held[1] - guests or tonumber(held[3] or 0)
if count > 1 and mine < 1 then
  return redis.error_reply('LATCHKEY_GONE the hold is over, others of the same owner go on')
end
local more = count - mine
if me == '' then
  redis.call('hset', key, owner, held[1] + more)
else
  redis.call('hset', key, owner, held[1] + more, owner .. '@', guests + more, owner .. '@' .. me, count)
end
-- Entering again never shortens what the outer hold has.
if ttl < lease then
  redis.call('pexpire', key, lease)
end
return KEYS[2] and (redis.call('get', KEYS[2]) or token())
