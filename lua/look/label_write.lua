-- Write the record of a client: its label, and the notes of its holds.
--
-- KEYS[1] record of the client, a hash: 'label' -> the label, and the number of an owner or the id of
--         a permit -> the note of its hold
-- ARGV[1] minimum life of the record in ms, '0' removes it
-- ARGV[2] label
-- ARGV[3] number of fields to remove, which follow; then fields and their values, in pairs
--
-- Reply   1: the record did not exist, so the notes of earlier calls are lost
--         0: it existed, or was removed
--         error WRONGTYPE: the key is something else
--
-- Cost: 3 or 4 commands, 5 with fields to remove. Idempotent: a late copy may bring back the note of
-- a hold that is over, which nothing shows, and never shortens the life of the record.
local record, life = KEYS[1], tonumber(ARGV[1])
if life == 0 then
  redis.call('del', record)
  return 0
end
local texts, gone = {'label', ARGV[2]}, {}
for i = 4, #ARGV do
  local to = i < 4 + tonumber(ARGV[3]) and gone or texts
  to[#to + 1] = ARGV[i]
end
local fresh = redis.call('exists', record) == 0
redis.call('hset', record, unpack(texts))
if #gone > 0 then
  redis.call('hdel', record, unpack(gone))
end
if redis.call('pttl', record) < life then
  redis.call('pexpire', record, ARGV[1])
end
return fresh and 1 or 0
