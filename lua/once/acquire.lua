-- Begin the work that is to succeed once, or return the result of its success.
--
--@keys key
--@args owner lease
--
--   key   hash, in one of two forms:
--         running  once = token of the run, <owner> = 1; expires with the lease
--         done     once = token of the run that succeeded, result = its result
--
-- Reply   the token as a string: the owner runs
--         array of one: done; the result
--         array of two: another owner runs; remaining ms, -1 if it has no expiry, and the owner
--
-- A token is the time in µs at which its run began, by the clock of the server. So tokens grow
-- without a counter, which would stay behind when the key expires.
--
-- Cost: 3 commands when done or when another owner runs, 4 to begin. Idempotent: the owner keeps
-- its token, and its lease is never shortened.
--@include once/state
if result then
  --@include shared/only_master
  return {result}
end
if not token then
  --@include shared/clock
  clock()
  redis.call('hset', key, 'once', moment, owner, '1')
  redis.call('pexpire', key, lease)
  return moment
end
local ttl = redis.call('pttl', key)
if runner ~= owner then
  return {ttl, runner}
end
if ttl < tonumber(lease) then
  redis.call('pexpire', key, lease)
end
return token
