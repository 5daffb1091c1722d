-- Fragment: listened(channel) reports whether anybody listens on the channel of a client at this server, as
-- far as the server says. It needs the local publish, PUBLISH or SPUBLISH.
--
-- A grant is told only to who listens here, because it is taken back otherwise: a replica that was the master
-- once sends messages on to those who still listen there, and they would begin to hold.
local function listened(channel)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  return count[2] ~= 0
end
