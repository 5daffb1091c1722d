-- Make a write that changes nothing, so that WAIT has a write to wait for where no new key can be
-- written.
--
--@keys (key)...
--
-- Reply   1: written; 0: none of the keys exists
--
-- Sets the expiry of the first existing key to its current value, which Redis counts as a
-- write.
--
-- Cost: 2 commands, 3 for a key without an expiry. Works on a server that is out of
-- memory. Idempotent.
for i = 1, #KEYS do
  key = KEYS[i]
  local ttl = redis.call('pttl', key)
  if ttl > 0 then
    redis.call('pexpire', key, ttl)
    return 1
  end
  if ttl == -1 then
    redis.call('pexpire', key, 3600000)
    redis.call('persist', key)
    return 1
  end
end
return 0
