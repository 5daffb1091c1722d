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

-- grant makes an owner of first, the entry and the score that were popped from the queue, by the function
-- give, and tells its client: 'grant <kind> <owner> <first token>@<score> <key>'. listens says whether that
-- client listens; nil asks the server. If it does not, or its entry is used up, which an old queue may bring
-- back, or is for another kind of lock, the entry is dropped, and the next one is popped, 64 at most. The
-- entry own gets the lease full and no message, because its client has the reply. It returns the
-- owner and its first token, or nothing. The lock is written before the message is sent: in a slot that
-- migrates the server may refuse to write, and then nobody must hear of a grant.
local function grant(kind, key, give, own, full, first, listens)
  for _ = 1, 64 do
    local entry, since = first[1], first[2]
    if not entry then
      return nil
    end
    local to, client, lease, tokens, mark = string.match(entry, '^((%S+):%d+) (%d+) (%d+)(%a?)$')
    if to and to ~= owner and (mark == kind or kind == 'h' and (mark == '' or mark == 't')) then
      local mine, inbox = entry == own, prefix .. client .. suffix
      local token, heard = '0', mine and 1 or 0
      if tokens ~= '0' then
        --@include reserve
        token = reserve(counter, tonumber(tokens), mark == 't')
      end
      give(to, mine and full or lease)
      if listens == nil then
        listens = mine or counted ~= '1' or listened(inbox)
      end
      if listens and not mine then
        heard = redis.pcall(publish, inbox, 'grant ' .. kind .. ' ' .. to .. ' ' .. token .. '@' .. since .. ' ' .. key)
      end
      if type(heard) == 'number' and (heard > 0 or counted ~= '1') then
        return to, token
      end
      redis.call('del', key)
    end
    first, listens = redis.call('zpopmin', queue), nil
  end
end
