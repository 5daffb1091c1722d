-- Fragment: askFirst(key, ms) tells the client of the first waiter in the queue to retry in ms.
-- It drops entries whose clients do not receive the message, 64 at most. It needs tell.lua and
-- the locals of hand_over.lua.
local function askFirst(key, ms)
  for _ = 1, 64 do
    local entry = redis.call('zrange', queue, 0, 0)[1]
    if not entry then
      return
    end
    local to, client = string.match(entry, '^((%S+):%d+) ')
    if to and (tell(publish, prefix .. client .. suffix, 'ask ' .. ms .. ' ' .. to .. ' ' .. key) ~= 0 or counted ~= '1') then
      return
    end
    redis.call('zrem', queue, entry)
  end
end
