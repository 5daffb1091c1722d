-- Fragment: the keys of a fair lock except its hash, and the contents of the notes. stale is the ms
-- for which a waiter counts as alive after a sign of life, or nil if this script does not know.
--
--   queue      list of the waiting owners, in order; Redisson's
--   deadlines  sorted set owner -> ms at which Redisson gives it up; Redisson's. An owner is in both or in neither
--   notes      hash owner -> "<since µs>:<alive until ms>", for owners of this library. The first number is the
--              place, the last the sign of life: a waiter behind it does not wait longer than that for it,
--              whatever its deadline. An owner with "<since>:0" has left, and stays in the queue until it comes
--              to an end of it. An owner that can be granted the lock has "<since>:<lease>:<tokens>:<alive
--              until>": the ms of the lease that the grant gives it, and 1 if it wants a fencing token, 1t if that
--              must not fall below the server's clock. An owner that Redisson has removed from the other two keys
--              may keep its note for a while. fair/listeners.lua has the notes about waiters of Redisson
--@needs deadlines notes stale
local silent = {} -- clients that do not receive a grant: their waiters are dead

-- since returns since when a waiter of this library waits, nil for any other.
local function since(text)
  local us = text and string.match(text, '^(%d+):')
  return us and tonumber(us)
end

-- wants returns the lease and the tokens that the note of a waiter asks for, nil for a waiter that
-- retries by itself.
local function wants(text)
  return string.match(text or '', '^%d+:(%d+):(%d+t?):')
end

local function clientOf(waiter)
  return string.match(waiter, '^(.*):') or waiter
end

-- expiry returns until when a waiter counts as alive.
local function expiry(waiter, text)
  if next(silent) and silent[clientOf(waiter)] and wants(text) then
    return 0
  end
  return tonumber(text and string.match(text, ':(%d+)$') or redis.call('zscore', deadlines, waiter) or 0)
end

-- keep makes the notes expire some time after the last of them was written.
local function keep()
  redis.call('pexpire', notes, 60000 + 10 * (stale or 0))
end
