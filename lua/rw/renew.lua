-- Renew many holds of read/write locks.
--
--@keys firstKey...
--@args (owner side number lease leaseKeys)...
--
--   firstKey   and on, for each hold: lock, leases, the lease key of each read hold, and with a number
--              the notes (see rw/state.lua)
--   side       'read' or 'write'
--   number     of the read ownership if the owner also writes, else ''
--   lease      in ms; negative: the script only checks the hold
--   leaseKeys  number of lease keys
--
-- Reply   array: 1 renewed, 0 not held in that way by that owner, -1 unknown: the server
--         returned an error
--
-- A renewal never creates a hold, never shortens its lease, and changes no other lease.
--
-- Cost: 2 commands, and 8 for each hold, and 2 for each of its re-entries; 6 for a write hold.
-- Works on a server that is out of memory. Idempotent.
local key, leases, writers, notes
--@include rw/state

local function holds()
  local state = redis.pcall('hmget', key, owner, owner .. ':write')
  if state['err'] then
    return string.find(state['err'], 'WRONGTYPE', 1, true) and 0 or -1
  end
  if side == 'write' then
    return state[2] and 1 or 0
  end
  if not state[1] or number ~= '' and redis.call('hget', notes, owner) ~= number then
    return 0
  end
  return 1, tonumber(state[1])
end

redis.pcall('hdel', KEYS[1], '') -- lets the rest run on a server that is out of memory
local renewed = {}
local at = firstKey
for i = 1, #ARGV / 5 do
  owner, side, number, lease, leaseKeys = unpack(ARGV, 5 * i - 4, 5 * i)
  lease, leaseKeys = tonumber(lease), tonumber(leaseKeys)
  local first = at + 2
  key, leases, at = KEYS[at], KEYS[at + 1], first + leaseKeys
  if number ~= '' then
    notes, at = KEYS[at], at + 1
  end
  local state, reads = holds()
  renewed[i] = state
  if state == 0 then
    --@include shared/only_master
  elseif state == 1 then
    raise(key, lease)
    local left = lengthen(reads and owner or owner .. ':write', lease, true)
    local last = math.min(reads or 0, leaseKeys)
    for hold = 1, last do
      local leaseKey, ms = KEYS[first + hold - 1], hold == last and left or lease
      if redis.call('pttl', leaseKey) < ms then
        redis.call('set', leaseKey, '1', 'px', ms)
      end
    end
    raise(leases, left + spare)
    if number ~= '' then
      raise(notes, 2 * longestBar + lease)
    end
  end
end
return renewed
