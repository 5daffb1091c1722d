-- Give up an acquisition of permits whose outcome is unknown, or that no longer waits: it leaves the
-- queue, the permits that it took are given back, and a copy of it that arrives late does nothing.
--
-- KEYS[1] permits, KEYS[2] total (see sem_state.lua), KEYS[3] note (see op.lua)
-- KEYS[4] kind (see number_kind.lua)
-- KEYS[5] queue, KEYS[6] calls, KEYS[7] bar (see sem_serve.lua)
-- ARGV[1] number of the operation; '' for an entry without one, which only leaves the queue (KEYS[3] is not used)
-- ARGV[2] entry (see sem_serve.lua)
-- ARGV[3] ms for which permits are kept for a client that is called
-- ARGV[4] PUBLISH or SPUBLISH, ARGV[5] channel
-- ARGV[6], ARGV[7] prefix and suffix of the channels of clients
-- ARGV[8] '1' if the server counts all listeners of these channels
-- ARGV[9] channel on which clients of this library also listen
--
-- Reply   integer: how many permits were given back, negative for a debt
--         error WRONGTYPE: the key is another kind of object, to which nothing can be
--         given back; a late copy still does nothing
--
-- Cost: at most 16 commands, and 5 for each client that is called. Works on a server that is out of
-- memory. Idempotent: the note says that the operation was given up.
local key, total, note, kind, queue, calls, bar = unpack(KEYS)
local number, entry, keeping = ARGV[1], ARGV[2], tonumber(ARGV[3])
local publish, channel, clients, suffix, counts = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] == '1'
local waits = ARGV[9]
--@include op
--@include sem_offer

local done, past
if number ~= '' then
  done, past = recall()
  if past then
    return 0
  end
  room()
  remember(void)
end
local waited = redis.call('zrem', queue, entry, pollTime(entry)) + redis.call('zrem', calls, entry) > 0
closeBar(entry)
local free, wrong = look()
if not free then
  return wrong or 0
end
local back = tonumber(done or 0)
if back ~= 0 then
  free = redis.call('incrby', key, back)
end
if waited or back > 0 then
  pcall(offer, free)
end
return back
