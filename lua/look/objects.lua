-- Report the objects under any number of names, and the other keys of each object.
--
--@keys (key token queue fair writers total ids latch line numeral plain)...
--@args numsub most alone=''
--
--   token    fencing counter
--   queue    see queue/hand_over.lua
--   fair     fair queue (see fair/notes.lua)
--   writers  see rw/state.lua
--   ids      see permit/state.lua
--   latch    state of a latch (see latch/state.lua)
--   line     queue for permits with ids (see permit/queue.lua)
--   numeral  kind of a number (see shared/number_kind.lua)
--   plain    queue for permits without ids (see semaphore/serve.lua)
--   numsub   NUMSUB or SHARDNUMSUB
--   most     how many fields of a hash to report
--   alone    '1' for a single name: report what is not an object too, and 'none' if the key does not exist;
--            only a server that accepts writes replies that, or reports a number or a rate limiter
--
-- For a single object all keys but the first may be left out.
--
-- Reply   array: for each object nil if its key does not exist or is not an object, else an array:
--         type of the key, remaining ms (-1 no expiry), fencing counter or nil, array of the
--         content (fields and values of a hash, or some of them; the value of a string; empty
--         for other data, or if it is too large), number of fields of a hash, number of waiting owners
--         or parties, number of listening clients, and for a number: total or nil, number of ids whose
--         lease is not over, number of ids whose lease is over, and what it is by the keys that this library
--         keeps alongside: 'latch', 'semaphore', 'permit semaphore', or '' if there are none
--
-- Other keys of an object that cannot be read count as absent.
--
-- Cost: at most 17 commands for each object; O(log n) in the permits and writers. Writes nothing.
--@include shared/shape_hash
--@include shared/clock
most = tonumber(most)
local each = #KEYS == 1 and 1 or 11

local function number(command, key, ...)
  local n = key and redis.pcall(command, key, ...)
  return type(n) == 'number' and n or 0
end

-- queued returns how many wait in a queue, which may also have poll times: see queue/poller.lua.
local function queued(queue)
  return number('zcount', queue, '-inf', '(4503599627370496')
end

local function text(command, key, ...)
  local value = key and redis.pcall(command, key, ...)
  return type(value) == 'string' and value or false
end

-- listening returns the number of subscribers of a channel.
local function listening(channel)
  return tonumber(redis.pcall('pubsub', numsub, channel)[2] or 0) or 0
end

-- fields returns the content of a hash, always with its mode.
local function fields(key, size, mode)
  if size <= most then
    return redis.call('hgetall', key)
  end
  local drawn, some = redis.call('hrandfield', key, most, 'withvalues'), mode and {'mode', mode} or {}
  for i = 1, #drawn, 2 do
    if drawn[i] ~= 'mode' then
      some[#some + 1] = drawn[i]
      some[#some + 1] = drawn[i + 1]
    end
  end
  return some
end

-- barrier describes a hash if it is a barrier (see barrier/state.lua).
local function barrier(key, tag, size)
  local arrived = size <= 4 and text('hget', key, 'generation') and tonumber(text('hget', key, 'arrived') or nil)
  if not arrived then
    return false
  end
  local listen = listening('latchkey_barrier:' .. tag)
  return {'hash', redis.call('pttl', key), false, redis.call('hgetall', key), size, arrived, listen}
end

-- once describes a hash if it is a Once (see once/acquire.lua), without its result.
local function once(key, tag, size)
  local token = size == 2 and text('hget', key, 'once')
  if not token or not string.find(token, '^%d+$') then
    return false
  end
  local content = {'once', token, 'result', ''}
  if redis.call('hexists', key, 'result') == 0 then
    content = redis.call('hgetall', key)
  end
  return {'hash', redis.call('pttl', key), token, content, size, 0, listening('latchkey:' .. tag .. ':once')}
end

-- lock describes a hash, unless it is foreign. Most locks have a single field.
local function lock(key, tag, token, queue, fair, writers)
  local size = redis.call('hlen', key)
  if size > 1 and isForeign(key) then
    return once(key, tag, size) or barrier(key, tag, size)
  end
  local mode = size > 1 and redis.call('hget', key, 'mode')
  local waiting = queued(queue) + number('llen', fair)
  if mode then
    waiting = math.max(waiting, number('zcount', writers, clock(), '+inf'))
  end
  local channel = (mode and 'redisson_rwlock:' or 'redisson_lock__channel:') .. tag
  local content = fields(key, size, mode)
  if #content == 0 then -- it has just expired: only a server embedded in a test allows that
    return false
  end
  return {'hash', redis.call('pttl', key), text('get', token), content, size, waiting, listening(channel)}
end

-- latchChannel returns the channel that says that a latch is open: see countdownlatch.go.
local function latchChannel(key, tag)
  if numsub == 'SHARDNUMSUB' and tag == key then
    return 'latchkey_latch__channel:' .. key
  end
  return 'redisson_countdownlatch__channel__{' .. key .. '}'
end

-- count describes a number.
local function count(key, tag, value, total, ids, latch, line, kind, plain)
  local what, listen, held, over, waiting = '', 0, 0, 0, 0
  kind = text('get', kind)
  if kind == 'latch' or not kind and text('hget', latch, 'state') == 'set' then
    what, listen = 'latch', listening(latchChannel(key, tag))
  else
    listen = listening('redisson_sc:' .. tag)
    waiting = number('zcard', line) + queued(plain)
    over = number('zcount', ids, 0, clock())
    held = number('zcard', ids) - over
    if kind then
      what = kind
    elseif ids and redis.call('exists', ids, line) > 0 then
      what = 'permit semaphore'
    elseif ids and redis.call('exists', total, plain) > 0 then
      what = 'semaphore'
    end
  end
  return {'string', redis.call('pttl', key), false, {value}, 0, waiting, listen, text('get', total), held, over, what}
end

local reply = {}
for at = 1, #KEYS, each do
  key = KEYS[at]
  if each > 1 then
    token, queue, fair, writers, total, ids, latch, line, numeral, plain = unpack(KEYS, at + 1, at + 10)
  end
  local kind, found = redis.call('type', key)['ok'], false
  local tag = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
  if kind == 'hash' then
    found = lock(key, tag, token, queue, fair, writers)
  elseif kind == 'string' and redis.call('strlen', key) <= 1024 then
    local value = redis.call('get', key)
    if value and #value <= 20 and string.find(value, '^-?%d+$') then
      found = count(key, tag, value, total, ids, latch, line, numeral, plain)
    elseif value then
      local waiting, listen = queued(queue), listening('redisson_lock__channel:' .. tag)
      found = {kind, redis.call('pttl', key), false, {value}, 0, waiting, listen}
    end
  end
  if alone == '1' and (not found or #found > 7 or string.find(found[4][1] or '', '^rate ')) then
    --@include shared/only_master
  end
  if alone == '1' and not found then
    if redis.call('exists', key) == 0 then
      kind = 'none'
    end
    found = {kind, redis.call('pttl', key), kind == 'none' and text('get', token), {}, 0, 0, 0}
  end
  reply[#reply + 1] = found
end
return reply
