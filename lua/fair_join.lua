-- Fragment: join() gives an owner that is new a place at the end of a queue, if one look
-- shows that it is in order. It needs the locals queue, deadlines, notes and stale of
-- fair_notes.lua; and owner, and want: what it is to be granted, as in its note, or ''.
-- Most who come need no more than this. Numbers are given to the server as text, because a
-- script takes long to write them out.
local ahead = false -- whether waiters of Redisson stand before the owner, as far as is known
--@include fair_clock

-- join returns the ticket as text; nil if the owner may have a place, or had one, or the last
-- in the queue is not of this library, or not alive. Nothing is changed then.
local function join()
  local last = redis.call('lindex', queue, '-1')
  if not last then
    clock()
    --@include fair_open
    return open(nil, now + stale)
  end
  local text = redis.call('hget', notes, last) or ''
  local since, life = string.match(text, '^(%d+):.*:(%d+)$')
  if not since then
    since, life = string.match(text, '^(%d+):(%d+)$')
  end
  local deadline = since and redis.call('zscore', deadlines, last)
  if not deadline then
    return
  end
  clock()
  if tonumber(life) <= now then
    return
  end
  -- A ticket is later than the last one, also if the clock of the server was set back.
  local ticket = tonumber(since) < micros and moment or string.format('%.0f', since + 1)
  local alive = string.format('%.0f', now + stale)
  ahead = deadline ~= life and deadline - life > 0
  deadline = ahead and alive + (deadline - life) or alive
  if redis.call('zadd', deadlines, 'nx', deadline, owner) == 0 then
    return
  elseif redis.call('hsetnx', notes, owner, ticket .. ':' .. want .. alive) == 0 then
    redis.call('zrem', deadlines, owner)
    return
  end
  redis.call('rpush', queue, owner)
  return ticket
end
