-- Fragment: listened(channel) reports whether the channel of a client has subscribers at this server;
-- true if the server does not say. It needs the local publish, PUBLISH or SPUBLISH.
--
-- A grant is sent only if its client listens here, because otherwise it is taken back. A replica that
-- was the master before forwards messages to clients that still listen there, and they would
-- begin to hold the lock.
local function listened(channel)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  return count[2] ~= 0
end
