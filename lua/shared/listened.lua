-- Fragment: listened(channel) reports whether the channel of a client has subscribers at this server;
-- true if the server does not say.
--
-- A grant is written first, because a slot that migrates may refuse the write, and then announced. If nobody
-- receives the message, and the server counts all listeners, the client is gone: the script takes the grant back, and
-- the next waiter has its turn. It must not announce a grant that it takes back, because a former master may forward
-- the message to the client. So it asks first who listens.
--@needs publish
local function listened(channel)
  local count = redis.pcall('pubsub', publish == 'PUBLISH' and 'numsub' or 'shardnumsub', channel)
  return count[2] ~= 0
end
