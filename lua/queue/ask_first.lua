-- Fragment: askFirst(ms) tells the client of the first waiter in the queue to retry in ms. It passes over
-- pollers, and drops other entries whose clients do not receive the message, 64 at most. It never fails.
--@needs key queue publish prefix suffix counted
--@include shared/tell
local function ask(ms)
  local at = 0
  for _ = 1, 64 do
    local entry = redis.call('zrange', queue, at, at)[1]
    if not entry or string.sub(entry, 1, 1) == '~' then -- see queue/poller.lua
      return
    end
    local to, client = string.match(entry, '^((%S+):%d+) ')
    if to and redis.call('zscore', queue, '~' .. to) then
      at = at + 1
    else
      local receivers = to and tell(publish, prefix .. client .. suffix, 'ask ' .. ms .. ' ' .. to .. ' ' .. key)
      if to and (receivers ~= 0 or counted ~= '1') then
        return
      end
      redis.call('zrem', queue, entry)
    end
  end
end

local function askFirst(ms)
  if queue then
    pcall(ask, ms)
  end
end
