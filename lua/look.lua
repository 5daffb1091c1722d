-- Tell what stands under names, as many as are asked for, and what stands beside each.
--
-- KEYS    of each object: [1] its key, [2] fencing counter, [3] queue (see grant.lua), [4] fair
--         queue (see fair_notes.lua), [5] writers (see rw_state.lua), [6] total (see
--         sem_state.lua), [7] ids (see permit_state.lua), [8] state of a latch (see
--         latch_state.lua), [9] queue of a fair semaphore (see fairsem_queue.lua). Of a single object all but
--         the first may be left out.
-- ARGV[1] NUMSUB or SHARDNUMSUB
-- ARGV[2] how many fields of a hash to tell
--
-- Reply   array: for each object nil if its key is not there or holds no object, else an array:
--         type of the key, remaining ms (-1 no expiry), fencing counter or nil, array of the
--         content (fields and values of a hash, or some of them; the value of a string, empty
--         if it is too large), how many fields a hash has, how many owners or parties wait, how many
--         clients listen, and of a number: total or nil, how many ids there are whose lease
--         is not over, and whose is, 'latch', 'semaphore' or '' as in inspect_number.lua
--
-- What stands beside an object and cannot be read counts as absent.
--
-- Cost: at most 13 commands for each object; O(log n) in the permits and writers. Writes nothing.
--@include shape_hash
--@include clock
local numsub, most = ARGV[1], tonumber(ARGV[2])
local each = #KEYS == 1 and 1 or 9

local function number(command, key, ...)
  local n = key and redis.pcall(command, key, ...)
  return type(n) == 'number' and n or 0
end

local function text(command, key, ...)
  local value = key and redis.pcall(command, key, ...)
  return type(value) == 'string' and value or false
end

-- listening tells how many listen on a channel.
local function listening(channel)
  return tonumber(redis.pcall('pubsub', numsub, channel)[2] or 0) or 0
end

-- fields returns the content of a hash, its mode in any case.
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

-- barrier tells of a hash that is a barrier (see barrier_state.lua), and not of another.
local function barrier(key, tag, size)
  if size > 3 or not text('hget', key, 'generation') or not text('hget', key, 'arrived') then
    return false
  end
  local arrived = tonumber(text('hget', key, 'arrived') or 0) or 0
  local listen = listening('latchkey_barrier:' .. tag)
  return {'hash', redis.call('pttl', key), false, redis.call('hgetall', key), size, arrived, listen}
end

-- lock tells of a hash, unless it is foreign. Most have a single field, which tells that by itself.
local function lock(key, tag, token, queue, fair, writers)
  local size = redis.call('hlen', key)
  if size > 1 and isForeign(key) then
    return barrier(key, tag, size)
  end
  local mode = size > 1 and redis.call('hget', key, 'mode')
  local waiting = number('zcard', queue) + number('llen', fair)
  if mode then
    waiting = math.max(waiting, number('zcount', writers, clock(), '+inf'))
  end
  local channel = (mode and 'redisson_rwlock:' or 'redisson_lock__channel:') .. tag
  local content = fields(key, size, mode)
  if #content == 0 then -- it has just expired, which only a server embedded in a test lets happen
    return false
  end
  return {'hash', redis.call('pttl', key), text('get', token), content, size, waiting, listening(channel)}
end

-- latchChannel is where a latch tells that it is open: see countdownlatch.go.
local function latchChannel(key, tag)
  if numsub == 'SHARDNUMSUB' and tag == key then
    return 'latchkey_latch__channel:' .. key
  end
  return 'redisson_countdownlatch__channel__{' .. key .. '}'
end

-- count tells of a number.
local function count(key, tag, value, total, ids, latch, line)
  local what, listen, held, over, waiting = '', 0, 0, 0, 0
  if text('hget', latch, 'state') == 'set' then
    what, listen = 'latch', listening(latchChannel(key, tag))
  else
    listen = listening('redisson_sc:' .. tag)
    waiting = number('zcard', line)
    over = number('zcount', ids, 0, clock())
    held = number('zcard', ids) - over
    what = ids and redis.call('exists', total, ids, line) > 0 and 'semaphore' or ''
  end
  return {'string', redis.call('pttl', key), false, {value}, 0, waiting, listen, text('get', total), held, over, what}
end

local reply = {}
for at = 1, #KEYS, each do
  local key = KEYS[at]
  local token, queue, fair, writers, total, ids, latch, line
  if each > 1 then
    token, queue, fair, writers, total, ids, latch, line = unpack(KEYS, at + 1, at + 8)
  end
  local kind = redis.call('type', key)['ok']
  local tag = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
  local found = false
  if kind == 'hash' then
    found = lock(key, tag, token, queue, fair, writers)
  elseif kind == 'string' and redis.call('strlen', key) <= 1024 then
    local value = redis.call('get', key)
    if not value then
      found = false
    elseif #value <= 20 and string.find(value, '^-?%d+$') then
      found = count(key, tag, value, total, ids, latch, line)
    else
      local waiting, listen = number('zcard', queue), listening('redisson_lock__channel:' .. tag)
      found = {kind, redis.call('pttl', key), false, {value}, 0, waiting, listen}
    end
  end
  reply[#reply + 1] = found
end
return reply
