-- Fragment: an operation that counts once, however often it is sent. number is its number.
--
--   note   key of its session, a string: the number of the last operation of the session, a space, its result
--
-- A session of a client runs one operation after the other, with growing numbers. So a copy
-- that arrives late is either the noted operation, which is answered from the note, or an
-- earlier one, which is refused, as long as the note lives. The note lives longer than TCP
-- tries to deliver a copy. A script replies to an operation that is past, or was given up, with
--
--   error LATCHKEY_PAST: the operation is over; nothing changed
--@needs note number
local memory = 1200000
local void = 'void'

-- recall returns the result of this operation if it was executed before, or an error
-- reply if it is past or was given up. Both are nil if the operation is new.
local function recall()
  local last = redis.call('get', note)
  if not last then
    return
  end
  local of, result = string.match(last, '^(%d+) (.*)$')
  if of == number and result ~= void then
    return result
  end
  if of == number or tonumber(of) > tonumber(number) then
    return nil, redis.error_reply('LATCHKEY_PAST the operation is over')
  end
end

-- remember notes the result. What a script changes by a number it notes first: a user that may not write the note must
-- not change the number either, because its caller would repeat what was refused.
local function remember(result)
  redis.call('set', note, number .. ' ' .. result, 'px', memory)
end

-- room lets the rest of the script run on a server that is out of memory.
local function room()
  redis.call('del', note)
end

-- nothing is the result of an operation that found nothing to do. It is noted like any
-- other, because a late copy might find something.
local function nothing()
  room()
  remember(0)
  return 0
end
