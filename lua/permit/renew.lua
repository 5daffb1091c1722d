-- Renew permits of one or more semaphores.
--
-- KEYS[i]     ids (see permit/state.lua)
-- ARGV[2i-1]  id, as bytes
-- ARGV[2i]    lease in ms
--
-- Reply   array: 1 renewed; 2 + ms renewed, and the semaphore ends after so many ms, before the lease
--         does; 0 not held; -1 unknown: the server returned an error
--
-- A renewal never brings a permit back and never shortens its lease.
--
-- Cost: 2 commands, and 3 for each permit; O(log p). Works on a server that is out of memory,
-- because updating an existing member needs no memory. Idempotent.
local key, held, kind, publish, channel
--@include permit/state

if KEYS[1] then
  redis.pcall('zrem', KEYS[1], '') -- lets the rest run on a server that is out of memory
end
local renewed = {}
for i, key in ipairs(KEYS) do
  local score = redis.pcall('zscore', key, ARGV[2 * i - 1])
  if type(score) == 'table' and score['err'] then
    renewed[i] = string.find(score['err'], 'WRONGTYPE', 1, true) and 0 or -1
  elseif not score or lapsed(score) then
    --@include shared/only_master
    renewed[i] = 0
  else
    redis.call('zadd', key, 'xx', 'gt', ends(ARGV[2 * i]), ARGV[2 * i - 1])
    local ms = untilEnd(ARGV[2 * i], redis.call('pttl', key))
    renewed[i] = ms and 2 + tonumber(ms) or 1
  end
end
return renewed
