-- Fragment: the shape of the hash of a lock, by the rule that internal/base/keyspace/shape.go states. The library must
-- not wait for, write or remove data of an application under the name of a lock.

-- A UUID, written out because a script that builds the pattern is slower.
local ownerStart = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x:%-?%d+'

-- isOwner reports whether text begins with an owner, a client id and a number, and whether that is
-- all of it. A separator follows the owner if there is more.
local function isOwner(text)
  local _, last = string.find(text, ownerStart)
  if last == #text then
    return true, true
  end
  return last ~= nil and string.find(text, '^[:@]', last + 1) ~= nil, false
end

-- isForeign reports whether a hash is not a lock, and an owner if it is one. It looks at 4 fields only,
-- because data of an application may be large: in a lock all fields are owners, in other data none are.
local function isForeign(key)
  local some = redis.call('hrandfield', key, '4', 'withvalues') or {}
  local holder
  for i = 1, #some, 2 do
    local field, value = some[i], some[i + 1]
    local is, all = isOwner(field)
    if is and string.find(value, '^%d+$') then
      holder = all and field or string.match(field, '^[^@]*')
    elseif field ~= 'mode' or value ~= 'read' and value ~= 'write' then
      return true
    end
  end
  return not holder and #some > 0, holder -- without fields it has just expired
end
