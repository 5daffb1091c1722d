-- Write the record of a client: its label, and the notes of its holds.
--
--@keys record
--@args life label='' removed='0' firstField...
--
--   record      of the client, a hash: 'label' -> the label, and the number of an owner or the id of a
--               permit -> the note of its hold
--   life        minimum life of the record in ms, '0' removes it
--   removed     number of fields to remove
--   firstField  and on: these; then fields and their values, in pairs
--
-- Reply   1: the record did not exist, so the notes of earlier calls are lost
--         0: it existed, or was removed
--         error WRONGTYPE: the key is something else
--
-- Cost: 3 or 4 commands, 5 with fields to remove. Idempotent: a late copy may bring back the note
-- of a hold that is over, which nothing shows, and never shortens the life of the record.
if life == '0' then
  redis.call('del', record)
  return 0
end
local texts, gone = {'label', label}, {}
for i = firstField, #ARGV do
  local to = i < firstField + removed and gone or texts
  to[#to + 1] = ARGV[i]
end
local fresh = redis.call('exists', record) == 0
redis.call('hset', record, unpack(texts))
if #gone > 0 then
  redis.call('hdel', record, unpack(gone))
end
if redis.call('pttl', record) < tonumber(life) then
  redis.call('pexpire', record, life)
end
return fresh and 1 or 0
