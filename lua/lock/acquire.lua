-- Acquire a re-entrant lock, or enter it once more (Redisson RLock, RFencedLock).
--
-- KEYS[1] lock hash: field <owner> = hold count, the sum over all its clients
-- KEYS[2] queue (see queue/hand_over.lua), unless the owner has no entry or it cannot be used
-- the last of three, or the second without a queue: fencing counter, for a fenced lock only
-- ARGV[1] owner
-- ARGV[2] lease in ms
-- ARGV[3] hold count of this client after this call, usually '1'; above 1 it is a re-entry
-- ARGV[4] '' if the owner was made by this client, else the name of this guest's
--         part: the id of the client and a number that it uses once
-- ARGV[5] '1' if tokens must not fall below the server's clock in ms
-- ARGV[6] '1' for a fenced lock
-- ARGV[7] the entry of the owner, to wait in the queue if it is refused, or ''
-- ARGV[8] the entry of the owner, if it may be in the queue already, or ''
-- ARGV[9] '', or the ms after which a poller polls again (see queue/poller.lua)
-- The usual value of ARGV[3] is '1', of the others ''. Trailing arguments from ARGV[3] on may be
-- omitted if they have their usual values.
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
local key, queue, counter = KEYS[1], KEYS[2], KEYS[3]
local owner, count, me, entry, oldEntry = ARGV[1], ARGV[3] or '1', ARGV[4] or '', ARGV[7] or '', ARGV[8] or ''
local fenced = ARGV[6] == '1'

local ttl = redis.call('pttl', key)
-- Usually the lock is free, or its hash has one field, the owner of somebody else. Functions that
-- these cases do not need are defined only later.
if ttl == -2 and count == '1' and me == '' and not fenced and not counter then
  redis.call('hset', key, owner, '1')
  redis.call('pexpire', key, ARGV[2])
  if oldEntry ~= '' and queue then
    redis.pcall('zrem', queue, oldEntry, '~' .. owner)
  end
  return nil
end
local lease, floor = tonumber(ARGV[2]), ARGV[5]
count = tonumber(count)
if fenced and #KEYS == 2 then
  counter = queue
  queue = nil
end
if ttl >= 0 and count == 1 then
  --@include shared/shape_hash
  local foreign, holder, only = isForeign(key)
  if only and not foreign and holder ~= owner then
    if queue and entry ~= '' then
      --@include queue/enqueue
      return {ttl, holder, enqueue(entry, nil, ARGV[9])}
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
  local since, pollIn = enqueue(entry, nil, ARGV[9])
  return reply and {ttl, reply, since, pollIn} or ttl
end
return reply and {ttl, reply} or ttl
