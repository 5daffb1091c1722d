-- Fragment: endWrite(reads) ends the write hold of the owner, which has so many read
-- holds, and wakes whoever waits. Besides rw_state.lua it needs the locals owner,
-- publish and channel, and due, '1' if it is the turn of strangers.

-- letStrangersFirst has the clients of this library let strangers go first. All of those that
-- write ask for it, and it is so for one of them, by the microsecond in which the script runs.
-- Redisson ignores the message.
local function letStrangersFirst()
  local clients = redis.call('zcard', writers)
  if clients < 2 or redis.call('time')[2] % clients == 0 then
    tell(publish, channel, '2')
  end
end

local function endWrite(reads)
  if due == '1' then
    letStrangersFirst()
  end
  local waiting = waitingWriter()
  if waiting then
    -- The next writer's bar begins now; but if readers have waited while somebody
    -- wrote, it is their turn first.
    local note = redis.call('hmget', notes, 'readers', 'since')
    redis.call('hdel', notes, 'readers', reads == 0 and owner or '')
    if note[1] and tonumber(note[1]) > now then
      redis.call('hset', notes, 'since', score(turn), 'open', score(turn))
    else
      redis.call('hset', notes, 'since', score(0))
    end
    if not note[2] then
      raise(notes, 2 * longestBar) -- else it lives for as long already
    end
  end
  if reads == 0 then
    return free(waiting, publish, channel, true)
  end
  redis.call('hdel', key, owner .. ':write')
  redis.call('zrem', leases, owner .. ':write')
  redis.call('hset', key, 'mode', 'read')
  fall()
  return tellAll(publish, channel)
end
