-- Fragment: endWrite(reads) ends the write hold of the owner, which has that many read holds. The
-- lock goes to the next writer, or the waiters get a message. next is the entry with which this client
-- waits again, or '', full the lease of that entry, and stale for how many ms it counts as alive. Unless the
-- owner reads, rw/hand_over.lua is used.
--@needs key leases writers notes owner publish channel waits next full stale
--@include rw/state

-- announce notifies all listeners. It returns how many strangers received the message, -1 if the
-- server refused it.
local function announce()
  local receivers = tellAll(publish, channel)
  if receivers > 0 then
    --@include queue/strangers
    return strangers(channel, waits)
  end
  return receivers
end

-- beginTurn begins the time for which the next writer keeps new readers out. It reports whether
-- readers go first because they waited while somebody wrote.
local function beginTurn(reads)
  local note = redis.call('hmget', notes, 'readers', 'since')
  redis.call('hdel', notes, 'readers', reads == 0 and owner or '')
  local readers = note[1] and tonumber(note[1]) > clock()
  if readers then
    redis.call('hset', notes, 'since', score(turn), 'open', score(turn))
  else
    redis.call('hset', notes, 'since', score(0))
  end
  if not note[2] then
    raise(notes, 2 * longestBar) -- otherwise it lives that long already
  end
  return readers
end

local function waitOn()
  --@include queue/enqueue
  enqueue(next)
  waitsToWrite(string.match(next, '^%S+'), tonumber(stale))
end

local function endWrite(reads)
  local waiting = next ~= '' or waitingWriter()
  if reads > 0 then
    redis.call('hdel', key, owner .. ':write')
    redis.call('zrem', leases, owner .. ':write')
    redis.call('hset', key, 'mode', 'read')
    fall()
  elseif waiting then
    redis.call('del', key, leases)
  else
    redis.call('del', key, leases, writers, notes)
  end
  if not waiting and reads == 0 then
    return announce()
  end
  local readers, granted = beginTurn(reads), nil
  if reads == 0 and not readers then
    --@include rw/hand_over
    granted = handOverToWriter(next, full)
  end
  if next ~= '' and not (granted and string.find(next, granted[1] .. ' ', 1, true) == 1) then
    pcall(waitOn)
  end
  if reads == 0 and readers then
    --@include queue/ask_first
    askFirst(turn)
  end
  return granted or announce()
end
