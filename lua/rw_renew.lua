-- Renew many holds of read/write locks.
--
-- KEYS[3i-2] lock, KEYS[3i-1] leases, KEYS[3i] notes (see rw_state.lua)
-- ARGV[5i-4] owner
-- ARGV[5i-3] 'read' or 'write'
-- ARGV[5i-2] number of the read tenure if the owner writes too, else ''
-- ARGV[5i-1] lease in ms
-- ARGV[5i]   what the owner's lease keys begin with
--
-- Reply   array: 1 renewed, 0 not held in that way by that owner, -1 the server would
--         not tell
--
-- A renewal never creates a hold, never shortens what it has, and touches no lease but
-- its own.
--
-- Cost: about 5 commands for each hold, and two for each of its re-entries. Works on a
-- server that is out of memory. Idempotent.
local key, leases, writers, notes
--@include tell
--@include rw_state

local function holds(owner, side, number)
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

-- prolong is raise, once for each key and call: many holds are of one lock.
local raised = {}

local function prolong(what, ms)
  if (raised[what] or 0) < ms then
    raise(what, ms)
    raised[what] = ms
  end
end

local renewed = {}
for i = 1, #KEYS / 3 do
  key, leases, notes = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, lease = ARGV[5 * i - 4], tonumber(ARGV[5 * i - 1])
  local state, reads = holds(owner, ARGV[5 * i - 3], ARGV[5 * i - 2])
  renewed[i] = state
  if state == 1 then
    if not next(raised) then
      redis.call('hdel', key, '') -- lets the rest pass on a server at its limit
    end
    prolong(key, lease)
    for hold = 1, reads or 0 do
      local ttl = redis.call('pttl', ARGV[5 * i] .. hold)
      if ttl == -2 then
        redis.call('set', ARGV[5 * i] .. hold, '1', 'px', lease)
      elseif ttl < lease then
        redis.call('pexpire', ARGV[5 * i] .. hold, lease)
      end
    end
    local field = reads and owner or owner .. ':write'
    redis.call('zadd', leases, 'gt', string.format('%.0f', clock() + lease), field)
    prolong(leases, lease)
    if ARGV[5 * i - 2] ~= '' then
      raise(notes, 2 * longestBar + lease)
    end
  end
end
return renewed
