-- Fragment: listened(channel) reports whether the channel of a client has subscribers at this server;
-- true if the server does not say. It needs the local publish, PUBLISH or SPUBLISH.
--
-- If nobody listens here, the script takes the grant back, so it must not announce it: a former master
-- may forward the message to a client, which would then believe that it holds the lock.
local function listened(channel)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  return count[2] ~= 0
end
