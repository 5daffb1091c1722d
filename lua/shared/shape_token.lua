-- Fragment: the shape of the token of a mutex, by the rule that internal/base/keyspace/shape.go states.
--@include shared/shape_hash
local longestToken, longestBytes = 1024, 64

-- isText reports whether a value is UTF-8.
local function isText(value)
  local characters = {
    '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
    '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
    '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]',
  }
  for _, character in ipairs(characters) do
    value = string.gsub(value, character, ' ')
  end
  return not string.find(value, '[\128-\255]')
end

-- isToken reports whether a string whose key has ttl ms left is the token of a lock.
local function isToken(value, ttl)
  local size = #value
  if size < 8 or size > longestToken or ttl == -1 and not isOwner(value) then
    return false
  end
  if not isText(value) then
    return size <= longestBytes
  end
  local _, run = string.find(value, '^[%w_-]*')
  if run >= 22 then
    return true
  end
  return not string.find(value, '[ \t-\r]') and not string.find(value, '^[{%[]')
    and (size > 20 or string.find(value, '[^-+.0-9]') ~= nil)
end
