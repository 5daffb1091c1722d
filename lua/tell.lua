-- Fragment: tell(command, channel) wakes whoever waits for a release. It comes
-- last and may fail without harm: a server that does not permit the message must
-- not turn a lock that is released into an error. Returns how many subscribers
-- were told, or -1 if the server refused.
local function tell(command, channel)
  local told = redis.pcall(command, channel, '0')
  if type(told) ~= 'number' then
    return -1
  end
  return told
end
