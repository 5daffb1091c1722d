-- Acquire a plain lock by the recipe of the Redis documentation, after the single command
-- SET NX PX was refused or its reply was lost.
--
-- KEYS[1] lock: a string with the token of its holder
-- KEYS[2] queue (see queue/hand_over.lua), unless the owner has no entry or it cannot be used
-- ARGV[1] token
-- ARGV[2] lease in ms
-- ARGV[3] the entry of the owner, to wait in the queue if it is refused, or ''
-- ARGV[4] the entry of the owner, if it may be in the queue already, or ''
-- ARGV[5] '', or the ms after which a poller polls again (see queue/poller.lua)
--
-- Reply   nil: acquired
--         array: refused; remaining ms of the holder, -1 if it has no expiry, its token, and
--         the score of the entry if it waits in the queue, and the ms after which a poller is to poll;
--         or the remaining ms alone if the holder has just gone
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Cost: 3 commands, one more if the holder is not of this library or Redisson, 6 to join the queue
-- and 7 if the entry is in it already, 4 more for a poller. Idempotent: the script recognizes its own token.
local queue = KEYS[2]

local ttl = redis.call('pttl', KEYS[1])
if ttl == -2 then
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
  if queue and ARGV[4] ~= '' then
    redis.pcall('zrem', queue, ARGV[4], '~' .. ARGV[1])
  end
  return false
end
--@include shared/shape_hash
local size = redis.call('strlen', KEYS[1])
local holder = size < 64 and redis.call('get', KEYS[1])
local lock = holder and isOwner(holder)
if not lock then
  --@include shared/shape_token
  holder = size <= longestToken and redis.call('get', KEYS[1])
  lock = size <= longestToken and (not holder or isToken(holder, ttl))
end
if holder == ARGV[1] then
  if ttl < tonumber(ARGV[2]) then
    redis.call('pexpire', KEYS[1], ARGV[2])
  end
  return false
elseif not lock then
  return redis.error_reply('WRONGTYPE the key holds a string that is no token of a lock')
end
if queue and ARGV[3] ~= '' then
  --@include queue/enqueue
  local since, pollIn = enqueue(ARGV[3], nil, ARGV[5])
  return holder and {ttl, holder, since, pollIn} or ttl
end
return holder and {ttl, holder} or ttl
