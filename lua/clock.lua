-- Fragment: clock() is the server's time in ms, read once in a script and kept in now.
local now

local function clock()
  if not now then
    local time = redis.call('time')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return now
end
