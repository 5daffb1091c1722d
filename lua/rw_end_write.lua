-- Fragment: endWrite(reads) ends the write hold of the owner, which has so many read
-- holds, and wakes whoever waits. Besides rw_state.lua it needs the locals owner,
-- publish and channel.
local function endWrite(reads)
  local waiting = waitingWriter()
  if waiting then
    -- The next writer's bar begins now; but if readers have waited while somebody
    -- wrote, it is their turn first.
    local note, from = redis.call('hget', notes, 'readers'), now
    if note and tonumber(note) > now then
      from = now + turn
      redis.call('hdel', notes, 'readers')
      redis.call('hset', notes, 'open', string.format('%.0f', from))
    end
    redis.call('hset', notes, 'since', string.format('%.0f', from))
    raise(notes, 2 * longestBar)
  end
  redis.call('hdel', key, owner .. ':write')
  redis.call('zrem', leases, owner .. ':write')
  if reads == 0 then
    redis.call('hdel', notes, owner)
    if not waiting then
      redis.call('del', writers, notes)
    end
    return free(publish, channel, true)
  end
  redis.call('hset', key, 'mode', 'read')
  fall()
  return tellAll(publish, channel)
end
