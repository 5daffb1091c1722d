-- Fragment: clock() reads the server's time once in a script: micros in µs, moment the
-- same as text, and now in ms.
local now, micros, moment

local function clock()
  if not now then
    local time = redis.call('time')
    moment = time[1] .. string.sub('00000' .. time[2], -6)
    micros = tonumber(moment)
    now = math.floor(micros / 1000)
  end
end
