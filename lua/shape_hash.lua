-- Fragment: what the hash of a lock looks like, by the rule that shape.go states. Data of
-- an application under the name of a lock must not be waited for, written or removed.
-- Scripts of the hot path include it where a lock is found to be somebody else's: each
-- function that it defines costs time.
local sample = '4'

-- A UUID, written out because a script that builds the pattern is slower.
local ownerStart = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x:%-?%d+'

-- isOwner tells whether text begins with an owner: a client id and a number; and whether that is
-- all. What follows, if anything, is separated.
local function isOwner(text)
  local _, last = string.find(text, ownerStart)
  if last == #text then
    return true, true
  end
  return last ~= nil and string.find(text, '^[:@]', last + 1) ~= nil, false
end

-- isForeign tells whether a hash is no lock, an owner if it is one, and whether that is
-- all that stands in it. It looks at a few fields only, since data of an application may
-- be large: all of a lock are owners, and none of anything else.
local function isForeign(key)
  local some = redis.call('hrandfield', key, sample, 'withvalues') or {}
  local owners, holder = 0, nil
  for i = 1, #some, 2 do
    local field, value = some[i], some[i + 1]
    local is, all = isOwner(field)
    if is and (value == '1' or string.find(value, '^%d+$')) then
      owners, holder = owners + 1, all and field or string.match(field, '^[^@]*')
    elseif field ~= 'mode' or value ~= 'read' and value ~= 'write' then
      return true
    end
  end
  return owners == 0 and #some > 0, holder, #some == 2 -- without any its time has ended just now
end
