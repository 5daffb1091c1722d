-- Fragment: clock() reads the server's time once in a script, and returns it in ms: now. It also sets micros, the time
-- in µs, and moment, the same as text.
local now, micros, moment

local function clock()
  if not now then
    local time = redis.call('time')
    moment = time[1] .. string.sub('00000' .. time[2], -6)
    micros = tonumber(moment)
    now = math.floor(micros / 1000)
  end
  return now
end
