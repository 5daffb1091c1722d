-- Read what clients say of themselves and of their holds.
--
-- KEYS[1] and on: records of clients (see label_write.lua)
-- ARGV[1] and on: for each record how many fields to read besides the label, and these
--
-- Reply   array: for each record its label and the fields, nil for what is not there; a record that
--         cannot be read has nothing
--
-- Cost: a command for each record. Idempotent: writes nothing.
local reply, at = {}, 1
for i, record in ipairs(KEYS) do
  local n = tonumber(ARGV[at])
  local texts = redis.pcall('hmget', record, 'label', unpack(ARGV, at + 1, at + n))
  reply[i] = texts['err'] and {} or texts
  at = at + 1 + n
end
return reply
