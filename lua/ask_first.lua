-- Fragment: askFirst(key, ms) tells the client of the first in the queue to ask in so many ms.
-- One that nobody hears is dropped, 64 at most. It needs tell.lua, and what grant.lua needs.
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
