-- Acquire a re-entrant lock, or enter it once more (Redisson RLock, RFencedLock).
--
--@keys key queue=nil counter=nil
--@args owner lease count='1' me='' floor='' fenced='' entry='' oldEntry='' poll=''
--
--   key       hash: field <owner> = hold count, the sum over all its clients
--   queue     see queue/hand_over.lua; left out if the owner has no entry or it cannot be used. Then the
--             counter is the second key
--   counter   fencing counter, for a fenced lock only
--   count     hold count of this client after this call; above 1 it is a re-entry
--   me        '' if the owner was made by this client, else the name of this guest's part: the id of
--             the client and a number that it uses once
--   floor     '1' if tokens must not fall below the server's clock in ms
--   fenced    '1' for a fenced lock
--   entry     of the owner, to wait in the queue if it is refused, or ''
--   oldEntry  of the owner, if it may be in the queue already, or ''
--   poll      '', or the ms after which a poller polls again (see queue/poller.lua)
--
-- Reply   nil, or the fencing token as a string: acquired
--         array: refused; remaining ms of the holder, -1 if it has no expiry, its owner, and
--         the score of the entry if it waits in the queue, and the ms after which a poller is to poll;
--         or the remaining ms alone if the holder has just gone
--         error LATCHKEY_GONE: a re-entry, but the hold is over; nothing changed
--         error WRONGTYPE: the key is another kind of object; nothing changed
--
-- The field <owner>@<part> keeps the part of a guest, <owner>@ the sum of all guests. The
-- rest of the count belongs to the client that made the owner. Without guests the
-- hash has the one field that Redisson writes.
--
-- Cost: 3 commands when free, 2 when refused, 5 to join the queue and 6 if the entry is in it already,
-- 4 more for a poller, 4 for a re-entry; a token adds one. Idempotent: counts are absolute, and a token is
-- issued only when a free lock becomes held.
local ttl = redis.call('pttl', key)
-- Usually the lock is free, or its hash has one field, the owner of somebody else. Functions that
-- these cases do not need are defined only later.
if ttl == -2 and count == '1' and me == '' and fenced ~= '1' and not counter then
  redis.call('hset', key, owner, '1')
  redis.call('pexpire', key, lease)
  if oldEntry ~= '' and queue then
    redis.pcall('zrem', queue, oldEntry, '~' .. owner)
  end
  return nil
end
lease, count = tonumber(lease), tonumber(count)
if fenced == '1' and not counter then
  counter = queue
  queue = nil
end
if ttl >= 0 and count == 1 then
  --@include shared/shape_hash
  local foreign, holder, only = isForeign(key)
  if only and not foreign and holder ~= owner then
    if queue and entry ~= '' then
      --@include queue/enqueue
      return {ttl, holder, enqueue(entry, nil, poll)}
    end
    return {ttl, holder}
  end
end

--@include lock/hash
if ttl == -2 then
  if count > 1 then
    --@include shared/only_master
    return redis.error_reply('LATCHKEY_GONE the hold is over')
  end
  local token = take()
  if queue and oldEntry ~= '' then
    redis.pcall('zrem', queue, oldEntry, '~' .. owner)
  end
  return token
end
local entered, reply = enter(ttl)
if entered then
  return reply
end
if queue and entry ~= '' then
  --@include queue/enqueue
  local since, pollIn = enqueue(entry, nil, poll)
  return reply and {ttl, reply, since, pollIn} or ttl
end
return reply and {ttl, reply} or ttl
