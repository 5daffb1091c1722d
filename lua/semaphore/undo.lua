-- Give up an acquisition of permits whose outcome is unknown, or that no longer waits: it leaves
-- the queue, the permits that it took are given back, and a late copy of it does nothing.
--
--@keys key total note kind queue calls bar
--@args number entry keeping publish channel clients suffix counts waits
--
--   number  '' for an entry without an operation, which only leaves the queue: then note is not used
--
-- Reply   integer: how many permits were given back, negative for a debt
--         error WRONGTYPE: the key is another kind of object, to which nothing can be
--         given back; a late copy still does nothing
--
-- Cost: at most 16 commands, and the calls. Works on a full server. Idempotent: the note says that
-- the operation was given up.
--@include shared/op
--@include semaphore/serve

local done, past
if number ~= '' then
  done, past = recall()
  if past then
    return 0
  end
  room()
  remember(void)
end
local free, wrong = look()
local back = free and tonumber(done or 0) or 0
if back ~= 0 then
  free = redis.call('incrby', key, back)
end
local waited = redis.call('zrem', queue, entry, pollTime(entry)) + redis.call('zrem', calls, entry) > 0
closeBar(entry)
if not free then
  return wrong or 0
end
if waited or back > 0 then
  pcall(offer, free, waits)
end
return back
