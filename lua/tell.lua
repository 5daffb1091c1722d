-- Fragment: tell(command, channel, message) wakes whoever waits for a release; the
-- message is '0' unless it says so. It comes last and may fail without harm: a server
-- that does not permit the message must not turn a lock that is released into an
-- error. Returns how many subscribers were told, or -1 if the server refused.
local function tell(command, channel, message)
  local told = redis.pcall(command, channel, message or '0')
  if type(told) ~= 'number' then
    return -1
  end
  return told
end
