-- Fragment: sets the locals token, result and runner: see once/acquire.lua. The result is nil while
-- an owner, the runner, runs, and all are nil if there is no key. It ends the script if the key is
-- another kind of object.
--@needs key
local token, result, runner
local size = redis.call('hlen', key)
if size > 0 then
  local fields = size == 2 and redis.call('hgetall', key) or {}
  local at = fields[1] == 'once' and 1 or 3
  local other, value = fields[4 - at], fields[5 - at]
  if fields[at] == 'once' and string.find(fields[at + 1], '^%d+$') then
    token = fields[at + 1]
  end
  if token and other == 'result' then
    result = value
  elseif token then
    --@include shared/shape_hash
    runner = select(2, isOwner(other)) and other
  end
  if not result and not runner then
    return redis.error_reply('WRONGTYPE the key is not a Once')
  end
end
