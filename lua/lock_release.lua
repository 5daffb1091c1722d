-- Give back a re-entrant lock, in part or in whole; also the undo of an
-- acquisition and the forced release.
--
-- KEYS[1] lock hash (see lock_acquire.lua)
-- KEYS[2] channel of the lock
-- ARGV[1] owner
-- ARGV[2] hold count of this client after this call; -1 drops the whole hold of
--         the owner, whatever its count
-- ARGV[3] '' if the owner was made by this client, else the name of its part
-- ARGV[4] PUBLISH or SPUBLISH
-- ARGV[5] ms to which the remaining time is raised if the lock stays held, or 0
--
-- Reply   nil: this client has no part in the lock; nothing changed
--         status HELD: the owner holds it still
--         integer: the lock is free; how many subscribers were told, -1 if the
--         server refused the message
--
-- Cost: 3 commands for the last release. Works on a server that is out of memory.
-- Idempotent: counts are absolute; on a lock of somebody else it does nothing.
--@include tell
local key, owner, count, me = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]

local held = redis.call('hmget', key, owner, owner .. '@', owner .. '@' .. me)
if not held[1] then
  return false
end

local guests = tonumber(held[2] or 0)
local mine = me == '' and held[1] - guests or tonumber(held[3] or 0)
if count >= 0 and mine < 1 then
  return false
end
local less = mine - count
local total = held[1] - less
if count < 0 or total < 1 then
  redis.call('del', key)
  return tell(ARGV[4], KEYS[2])
end

-- A write that needs no memory goes first: after it a server at its limit lets
-- the HSET of the lower count pass.
redis.call('hdel', key, '')
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
local lease = tonumber(ARGV[5])
if lease > 0 and redis.call('pttl', key) < lease then
  redis.call('pexpire', key, lease)
end
return redis.status_reply('HELD')
