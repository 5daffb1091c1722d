-- Fragment: listened(channel) reports whether the channel of a client has subscribers at this server;
-- true if the server does not say. It needs the local publish, PUBLISH or SPUBLISH.
--
-- Without a listener here a grant is taken back, so it must not be sent at all: a replica that was the
-- master before forwards messages to clients that still listen there, and they would begin to hold.
local function listened(channel)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  return count[2] ~= 0
end
