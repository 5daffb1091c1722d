-- Renew the leases of parties that wait at one or more barriers.
--
--@keys (key waiting)...
--@args (party lease)...
--
-- Reply   array: 1 renewed, 0 the party does not wait, -1 unknown: the server returned an error
--
-- A renewal never brings a party back and never shortens its lease.
--
-- Cost: 6 commands for each party; O(log n). Works on a full server, because updating an existing
-- member needs no memory. Idempotent.
local past, publish, channel
--@include barrier/state

if KEYS[2] then
  redis.pcall('zrem', KEYS[2], '') -- lets the rest run on a full server
end
local renewed = {}
for i = 1, #KEYS / 2 do
  key, waiting = KEYS[2 * i - 1], KEYS[2 * i]
  party, lease = ARGV[2 * i - 1], ARGV[2 * i]
  local score = redis.pcall('zscore', waiting, party)
  if type(score) == 'table' and score['err'] then
    renewed[i] = string.find(score['err'], 'WRONGTYPE', 1, true) and 0 or -1
  elseif not score or tonumber(score) <= clock() then
    --@include shared/only_master
    renewed[i] = 0
  else
    redis.call('zadd', waiting, 'xx', 'gt', leaseEnd(lease), party)
    outlive(key, lease)
    outlive(waiting, lease)
    renewed[i] = 1
  end
end
return renewed
