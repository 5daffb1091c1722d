-- Acquire a plain lock by the recipe of the Redis documentation, after the single command
-- SET NX PX was refused or its reply was lost.
--
--@keys key queue=nil
--@args token lease entry='' oldEntry='' poll=''
--
--   key    string with the token of its holder
--   queue  see queue/hand_over.lua; left out if the owner has no entry or it cannot be used
--   entry, oldEntry, poll  as in lock/acquire.lua
--
-- Reply   nil: acquired
--         array, or the remaining ms alone: refused, as in lock/acquire.lua
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- Cost: 3 commands, 6 to join the queue and 7 if the entry is in it already, 4 more for a poller. Idempotent: the
-- script recognizes its own token.
local ttl = redis.call('pttl', key)
if ttl == -2 then
  redis.call('set', key, token, 'px', lease)
  if queue and oldEntry ~= '' then
    redis.pcall('zrem', queue, oldEntry, '~' .. token)
  end
  return false
end
--@include shared/shape_token
local short = redis.call('strlen', key) <= longestToken
local holder = short and redis.call('get', key)
if holder == token then
  if ttl < tonumber(lease) then
    redis.call('pexpire', key, lease)
  end
  return false
elseif not short or holder and not isToken(holder, ttl) then
  return redis.error_reply('WRONGTYPE the key holds a string that is no token of a lock')
end
local since, pollIn
if queue and entry ~= '' then
  --@include queue/enqueue
  since, pollIn = enqueue(entry, poll)
end
return holder and {ttl, holder, since, pollIn} or ttl
