-- Read the labels of clients and the notes of their holds.
--
--@keys (record)...
--@args firstCount...
--
--   record      of a client (see look/label_write.lua)
--   firstCount  and on, for each record: the number of fields to read in addition to the label, and these
--
-- Reply   array: for each record an array of the number of all its fields, its label, and the fields,
--         nil for a field that does not exist; an empty array for a record that cannot be read
--
-- Cost: 2 commands for each record. Idempotent: writes nothing.
local reply, at = {}, firstCount
for i = 1, #KEYS do
  record = KEYS[i]
  local n = tonumber(ARGV[at])
  local texts = redis.pcall('hmget', record, 'label', unpack(ARGV, at + 1, at + n))
  if texts['err'] then
    texts = {}
  else
    table.insert(texts, 1, redis.call('hlen', record))
  end
  reply[i] = texts
  at = at + 1 + n
end
return reply
