-- Renew permits of one or more semaphores.
--
--@keys (held)...
--@args (id lease)...
--
-- Reply   array: 1 renewed; 2 + ms renewed, and the semaphore ends after so many ms, before the lease
--         does; 0 not held; -1 unknown: the server returned an error
--
-- A renewal never brings a permit back and never shortens its lease.
--
-- Cost: 2 commands, and 3 for each permit; O(log p). Works on a full server, because updating an
-- existing member needs no memory. Idempotent.
local key, kind, publish, channel
--@include permit/state

if KEYS[1] then
  redis.pcall('zrem', KEYS[1], '') -- lets the rest run on a full server
end
local renewed = {}
for i = 1, #KEYS do
  held = KEYS[i]
  id, lease = ARGV[2 * i - 1], ARGV[2 * i]
  local score = redis.pcall('zscore', held, id)
  if type(score) == 'table' and score['err'] then
    renewed[i] = string.find(score['err'], 'WRONGTYPE', 1, true) and 0 or -1
  elseif not score or lapsed(score) then
    key = held -- for the fragment
    --@include shared/only_master
    renewed[i] = 0
  else
    redis.call('zadd', held, 'xx', 'gt', ends(lease), id)
    local ms = untilEnd(lease, redis.call('pttl', held))
    renewed[i] = ms and 2 + tonumber(ms) or 1
  end
end
return renewed
