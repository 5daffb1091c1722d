-- Fragment: a lock that is free goes to the first owner in its queue whose client
-- listens. It needs the locals queue and counter, the keys of the queue and of the
-- fencing tokens; prefix and suffix, between which the id of a client makes its channel;
-- publish, PUBLISH or SPUBLISH; counted, '1' if the number of receivers that the
-- server tells is that of all; and owner, which is used up.
--
-- The queue is a sorted set. An entry is '<owner> <lease> <tokens>': the owner is the id
-- of a client, a colon and a number, the lease in ms is what a grant gives it, and the
-- tokens are how many fencing tokens a grant reserves, 0 if it wants none, with a t behind
-- them if they must not fall below the server's clock. An s or a w behind them says that the owner
-- wants a mutex, or to write.
-- The score is the time of the server, in µs, when it came.

--@include listened

-- grant makes the first in the queue the owner, by the function give, and tells its
-- client: 'grant <kind> <owner> <first token>@<score> <key>'. One that nobody hears is dropped, and
-- so is one that is used up, which an old queue may bring back, or waits for another kind
-- of lock, 64 at most. It tells nobody of the entry own, whose client has the reply, and
-- gives it the lease full. It returns the owner and its first token, or nothing. The lock
-- is written first: in a slot that migrates the server may refuse that, and nobody must be
-- told of a grant then.
local function grant(kind, key, give, own, full)
  for _ = 1, 64 do
    local first = redis.call('zpopmin', queue)
    local entry, since = first[1], first[2]
    if not entry then
      return nil
    end
    local to, client, lease, tokens, mark = string.match(entry, '^((%S+):%d+) (%d+) (%d+)(%a?)$')
    if to and to ~= owner and (mark == kind or kind == 'h' and (mark == '' or mark == 't')) then
      local token, heard = '0', 1
      if tokens ~= '0' then
        --@include reserve
        token = reserve(counter, tonumber(tokens), mark == 't')
      end
      give(to, entry == own and full or lease)
      if entry ~= own and counted == '1' and not listened(prefix .. client .. suffix) then
        heard = 0
      elseif entry ~= own then
        heard = redis.pcall(publish, prefix .. client .. suffix, 'grant ' .. kind .. ' ' .. to .. ' ' .. token .. '@' .. since .. ' ' .. key)
      end
      if type(heard) == 'number' and (heard > 0 or counted ~= '1') then
        return to, token
      end
      redis.call('del', key)
    end
  end
end
