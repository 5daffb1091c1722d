-- Fragment: leads(owner, term) reports whether an owner leads in a term: see election/announce.lua.
--@needs lock counter
local function leads(owner, term)
  if redis.call('hexists', lock, owner or '') == 0 then
    return false
  end
  local last = redis.call('get', counter)
  return not last or last == term
end
