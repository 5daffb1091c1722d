-- Acquire a plain lock by the recipe of the Redis documentation, after the single command
-- SET NX PX was refused or its reply was lost.
--
--@keys key queue=nil
--@args token lease entry='' oldEntry='' poll=''
--
--   key       string with the token of its holder
--   queue     see queue/hand_over.lua; left out if the owner has no entry or it cannot be used
--   entry     of the owner, to wait in the queue if it is refused, or ''
--   oldEntry  of the owner, if it may be in the queue already, or ''
--   poll      '', or the ms after which a poller polls again (see queue/poller.lua)
--
-- Reply   nil: acquired
--         array: refused; remaining ms of the holder, -1 if it has no expiry, its token, and
--         the score of the entry if it waits in the queue, and the ms after which a poller is to poll;
--         or the remaining ms alone if the holder has just gone
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Cost: 3 commands, one more if the holder is not of this library or Redisson, 6 to join the queue
-- and 7 if the entry is in it already, 4 more for a poller. Idempotent: the script recognizes its own token.
local ttl = redis.call('pttl', key)
if ttl == -2 then
  redis.call('set', key, token, 'px', lease)
  if queue and oldEntry ~= '' then
    redis.pcall('zrem', queue, oldEntry, '~' .. token)
  end
  return false
end
--@include shared/shape_hash
local size = redis.call('strlen', key)
local holder = size < 64 and redis.call('get', key)
local lock = holder and isOwner(holder)
if not lock then
  --@include shared/shape_token
  holder = size <= longestToken and redis.call('get', key)
  lock = size <= longestToken and (not holder or isToken(holder, ttl))
end
if holder == token then
  if ttl < tonumber(lease) then
    redis.call('pexpire', key, lease)
  end
  return false
elseif not lock then
  return redis.error_reply('WRONGTYPE the key holds a string that is no token of a lock')
end
if queue and entry ~= '' then
  --@include queue/enqueue
  local since, pollIn = enqueue(entry, nil, poll)
  return holder and {ttl, holder, since, pollIn} or ttl
end
return holder and {ttl, holder} or ttl
