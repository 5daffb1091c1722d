-- Fragment: listened(channel) reports whether anybody listens on the channel of a client at this server,
-- as far as the server says. It is asked before a grant, and not only told by its message: a replica that was the
-- master sends messages on to those who still listen there. Its clients would begin to hold what is taken back.
-- It needs the local publish, PUBLISH or SPUBLISH.
local function listened(channel)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  return count[2] ~= 0
end
