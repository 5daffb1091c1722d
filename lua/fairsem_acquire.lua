-- Acquire permits of a fair semaphore, all or none, or wait in its queue.
--
-- KEYS[1] permits, KEYS[2] ids (see permit_state.lua)
-- KEYS[3] queue, KEYS[4] alive, KEYS[5] grants (see fairsem_queue.lua)
-- KEYS[6] mark of an acquisition that was given up, for leases without an end only
-- ARGV[1] entry (see fairsem_queue.lua)
-- ARGV[2] lease in ms, '' without an end
-- ARGV[3] '' for one attempt, else the ms for which the entry counts as alive
-- ARGV[4] the ticket of an earlier call, or ''
-- ARGV[5] ms of the lease for which the permits are granted to the entry while it waits, '' if it
--         asks for itself
-- ARGV[6] '1' if it waits also for somebody to set the permits
-- ARGV[7] PUBLISH or SPUBLISH, ARGV[8] channel
-- ARGV[9], ARGV[10] what the channels of clients begin and end with
-- ARGV[11] '1' if the server counts all who listen there
--
-- Reply   nil: acquired
--         integer: refused, one attempt; ms after which the next lease ends, -1 if none does
--         array: refused; ms after which to ask again, -1 if that is not known; the ticket; 1 if
--         nobody has set the permits
--         error WRONGTYPE: the key is another kind of object; nothing changed
--         error LATCHKEY_UNSET: nobody has set the permits; nothing was acquired
--         error LATCHKEY_PAST: the acquisition was given up; nothing was acquired
--
-- Who waits stands in the queue when it is refused, unless it wants more permits than there are in
-- all. Whatever is free goes to the front of the queue first, whoever asks.
--
-- Cost: 7 commands if nobody waits, about 20 to join the queue; O(log w + n log p) for n permits
-- among p that are held and w that wait. What it grants to others on the way is about 16 commands
-- each, for 64 at most, and 128 dead are removed. Who stands in the queue may ask on a server that is
-- out of memory. Idempotent, but that the lease begins anew: ids
-- are used once, and an entry stands in the queue once.
local key, held, queue, alive, grants = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local entry, lease, stale, ticket, short = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local publish, channel, clients, suffix, counts = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11] == '1'
--@include tell
--@include sem_state
--@include permit_state
--@include fairsem_queue
--@include fairsem_keep

local free, wrong = look()
if wrong then
  return wrong
end

-- place returns the ticket of the entry as text: that which its client knows, for a late copy may have
-- brought it back with another. A new one is later than the last in the queue, also if the clock of the
-- server was set back.
local function place()
  local since = ticket ~= '' and ticket or redis.call('zscore', queue, entry)
  if not since then
    local time = redis.call('time')
    local last = redis.call('zrange', queue, '-1', '-1', 'withscores')[2]
    since = math.max(time[1] * 1000000 + time[2], (tonumber(last) or -1) + 1)
  end
  return string.format('%.0f', tonumber(since))
end

-- join puts the entry into the queue, or finds it there, and keeps it alive. Returns the ticket.
local function join()
  local since = place()
  if redis.call('zscore', queue, entry) then
    redis.call('zrem', alive, '') -- lets the rest pass on a server at its limit
  end
  redis.call('zadd', queue, since, entry)
  redis.call('zadd', alive, string.format('%.0f', clock() + stale), entry)
  if short ~= '' then
    redis.call('hset', grants, entry, short)
  else
    redis.call('hdel', grants, entry)
  end
  keep()
  return since
end

if not free then
  if stale and ARGV[6] == '1' then
    return {-1, join(), 1}
  end
  return unset()
end
local ids = idsOf(entry)
local absent, back = missing(ids)
free = free + back
local n = #absent
if n > 0 and KEYS[6] and redis.call('exists', KEYS[6]) == 1 then
  return redis.error_reply('LATCHKEY_PAST the acquisition was given up')
end

-- take makes the permits the entry's.
local function take()
  hold(ids, lease)
  return false
end

local empty = redis.call('exists', queue) == 0
if empty and free < n then
  putBack(n - free)
  free = look()
end
if n == 0 or empty and free >= n then
  if n == 0 then
    redis.call('zrem', held, '') -- lets what was granted be found out on a server at its limit
  end
  return take()
end

local possible, joined = n <= free + redis.call('zcard', held), nil
if stale and possible then
  joined = join()
end
local head, left
free, head, left = pass(free, back > 0, entry)
local first = head == entry or not head and not left
if first and not head and free < n then
  putBack(n - free)
  free = look()
end
if first and free >= n then
  drop({entry})
  take()
  pass(look(), true)
  return false
end
if not stale then
  return nextEnd()
elseif not possible then
  ticket = place()
  drop({entry})
  return {-1, ticket, 0}
end
return {head == entry and nextEnd() or left or 0, joined, 0}
