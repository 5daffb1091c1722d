-- Report the object under a name: who holds it, how often, for how long.
--
-- KEYS[1] key of the object
-- KEYS[2] its fencing counter
--
-- Reply   array: type of the key, remaining ms (-1 no expiry, -2 no key),
--         fencing counter or nil, array of the content (fields and values of a hash,
--         the value of a string; empty if it is too large to be a lock)
--
-- Cost: at most 5 commands; a hash of up to 20 000 fields or a string of up to
-- 1 024 bytes is read. Writes nothing.
local kind = redis.call('type', KEYS[1])['ok']
local token = redis.pcall('get', KEYS[2])
if type(token) == 'table' then
  token = false
end
-- On a server embedded in a test the key may expire between two commands of a script.
local content = {}
if kind == 'hash' and redis.call('hlen', KEYS[1]) <= 20000 then
  content = redis.call('hgetall', KEYS[1])
  kind = #content > 0 and kind or 'none'
elseif kind == 'string' and redis.call('strlen', KEYS[1]) <= 1024 then
  content = {redis.call('get', KEYS[1]) or nil}
  kind = #content > 0 and kind or 'none'
end
return {kind, redis.call('pttl', KEYS[1]), token, content}
