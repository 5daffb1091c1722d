-- Fragment: grants a free lock to the first owner in its queue whose client listens. It needs
-- the locals queue and counter, the keys of the queue and of the fencing tokens; prefix and
-- suffix, which enclose the id of a client in the name of its channel; publish, PUBLISH or
-- SPUBLISH; counted, '1' if the server reports the number of all receivers; and owner, which was
-- already used and gets no grant.
--
-- The queue is a sorted set. An entry is '<owner> <lease> <tokens>'. The owner is the id of a
-- client, a colon and a number. The lease in ms is what a grant gives it. The tokens are how many
-- fencing tokens a grant reserves, 0 for none, followed by t if they must not fall below the
-- server's clock. An s or a w after them says that the owner wants a mutex, or to write.
-- The score is the time of the server, in µs, when the entry came.

--@include listened

-- grant pops the first entry from the queue, makes its owner the owner by the function give, and
-- sends to its client 'grant <kind> <owner> <first token>@<score> <key>'. listens tells whether the client
-- of the first entry listens; if it is nil, grant asks the server. grant drops an entry whose client does
-- not listen, one that was already used, which an old queue may bring back, and one that waits for another
-- kind of lock, and pops the next, 64 at most. It publishes nothing for the entry own, because its client
-- reads the reply, and gives that entry the lease full. It returns the owner and its first token, or
-- nothing. It writes the lock first: in a slot that migrates the server may refuse the write, and then no
-- client may receive a grant.
local function grant(kind, key, give, own, full, listens)
  for _ = 1, 64 do
    local first = redis.call('zpopmin', queue)
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
    listens = nil
  end
end
