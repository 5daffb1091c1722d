-- Fragment: clock() returns the server's time in ms. A script reads it once and keeps it in now.
local now

local function clock()
  if not now then
    local time = redis.call('time')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return now
end
