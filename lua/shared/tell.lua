-- Fragment: tell(command, channel, message) wakes all waiters for a release; without a
-- message it sends '0'. It comes last and may fail without harm: a server that does not
-- permit the message must not turn a released lock into an error. It returns how many
-- subscribers received the message, or -1 if the server refused it.
local function tell(command, channel, message)
  local receivers = redis.pcall(command, channel, message or '0')
  if type(receivers) ~= 'number' then
    return -1
  end
  return receivers
end
