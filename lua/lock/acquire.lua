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
-- Cost: 3 commands when free or refused, 3 more to join the queue and 4 if the entry is in it already,
-- 4 more for a poller, 4 for a re-entry; a guest or a token adds one. Idempotent: counts are absolute, and a
-- token is issued only when a free lock becomes held.
local ttl = redis.call('pttl', key)
if ttl == -2 and count == '1' and me == '' and fenced ~= '1' and not counter and oldEntry == '' then
  -- Usually. To define the functions below would cost the server half as much again.
  redis.call('hset', key, owner, '1')
  redis.call('pexpire', key, lease)
  return nil
end
lease, count = tonumber(lease), tonumber(count)
if fenced == '1' and not counter then
  counter, queue = queue, nil
end
--@include lock/hash
local entered, reply = enter(ttl)
if entered then
  if ttl == -2 and queue and oldEntry ~= '' then
    redis.pcall('zrem', queue, oldEntry, '~' .. owner)
  end
  return reply
end
local since, pollIn
if queue and entry ~= '' then
  --@include queue/enqueue
  since, pollIn = enqueue(entry, poll)
end
return reply and {ttl, reply, since, pollIn} or ttl
