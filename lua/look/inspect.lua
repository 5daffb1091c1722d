-- Report the object under a name: who holds it, how often, for how long.
--
--@keys key counter
--@args surely
--
--   counter  its fencing counter
--   surely   '1' if only a server that accepts writes may reply that there is nothing
--
-- Reply   array: type of the key, remaining ms (-1 no expiry, -2 no key),
--         fencing counter or nil, array of the content (fields and values of a hash,
--         the value of a string; empty if it is too large to be a lock)
--
-- Cost: at most 6 commands; a hash of up to 20 000 fields or a string of up to
-- 1 024 bytes is read. Changes nothing.
local kind = redis.call('type', key)['ok']
local token = redis.pcall('get', counter)
if type(token) == 'table' then
  token = false
end
-- On a server embedded in a test the key may expire between two commands of a script.
local content = {}
if kind == 'hash' and redis.call('hlen', key) <= 20000 then
  content = redis.call('hgetall', key)
  kind = #content > 0 and kind or 'none'
elseif kind == 'string' and redis.call('strlen', key) <= 1024 then
  content = {redis.call('get', key) or nil}
  kind = #content > 0 and kind or 'none'
end
if kind == 'none' and surely == '1' then
  --@include shared/only_master
end
return {kind, redis.call('pttl', key), token, content}
