-- Fragment: handOver(kind, key, give, next, full, waits, first) grants a lock that has become free to the first
-- owner in its queue whose client listens, or leaves it free for strangers. First it puts the entry next at
-- the end of the queue, unless that is ''. counter is the key of the fencing tokens. owner was already used
-- and gets no grant.
--
-- The queue is a sorted set. An entry is '<owner> <lease> <tokens>'. The owner is the id of a
-- client, a colon and a number. The lease in ms is what a grant gives it. The tokens are 1 if a grant
-- issues a fencing token, else 0, followed by t if it must not fall below the server's clock. An s or a w
-- after them says that the owner wants a mutex, or to write.
-- The score is the time of the server, in µs, when the entry came.
--
-- Strangers are Redisson and all others that wait on channel and not in the queue. Each stranger that
-- listens has its turn as often as a client in the queue, by the microsecond in which the script runs. Then
-- the lock stays free, and the client of the first listening waiter in the queue receives a message to retry
-- after a short pause: 'ask <ms> <owner> <key>'. waits is a second channel: each client of this library
-- that listens on channel also listens there. If it is nil, the clients in the queue usually listen on
-- channel too. They are told to pause, by a message that Redisson ignores.
--
-- To grant, handOver makes an owner the owner of the lock by the function give, and sends to its client
-- 'grant <kind> <owner> <token>@<score> <key>'. It sends nothing for the entry next, because its
-- client reads the reply, and gives that entry the lease full. shared/listened.lua says why it writes the
-- lock before it sends the message, and announces no grant to a client that does not listen at this server.
--
-- A poller (see queue/poller.lua) that is about to poll is granted the lock without a message, for a second
-- longer than until then. Another poller is passed over, and keeps its place; after 8 of them the lock stays free.
--
-- handOver pops each entry before it knows whether its client may have the lock. It drops an entry whose
-- client does not listen, for which it issues no token, one that was already used, which an old queue may
-- bring back, and one that waits for another kind of lock, and pops the next, 64 at most. first is the
-- reply of ZPOPMIN, if the caller has popped the first entry.
--
-- It returns an array of the new owner and its token, or nil if the lock stays free.
--@needs queue counter prefix suffix publish counted channel owner
--@include shared/tell
--@include shared/clock
local function handOver(kind, key, give, next, full, waits, first)
  --@include queue/enqueue
  if next ~= '' then
    enqueue(next)
  end
  local numsub = publish == 'PUBLISH' and 'numsub' or 'shardnumsub'
  local passed = 0 -- pollers at the head of the queue

  -- take takes the next member out of the queue, and returns it with its score.
  local function take()
    local got = first or passed == 0 and redis.call('zpopmin', queue)
    if not got then
      got = redis.call('zrange', queue, passed, passed, 'withscores')
      redis.call('zrem', queue, got[1] or '')
    end
    first = nil
    return got[1], got[2]
  end

  for _ = 1, 64 do
    local entry, since = take()
    if not entry then
      return nil
    end
    local to, client, lease, tokens, mark = string.match(entry, '^((%S+):%d+) (%d+) (%d+)(%a?)$')
    if string.sub(entry, 1, 1) == '~' then -- there are no more entries
      enqueue(entry, since)
      return nil
    elseif to and to ~= owner and (mark == kind or kind == 'h' and (mark == '' or mark == 't')) then
      local mine, inbox = entry == next, prefix .. client .. suffix
      local count = waits and redis.pcall('pubsub', numsub, channel, inbox, waits)
        or redis.pcall('pubsub', numsub, channel, inbox)
      local strangers = (count[2] or 0) - (count[6] or 0)
      if strangers > 0 then
        local ours = redis.call('zcard', queue) + 1
        if redis.call('time')[2] % ours < math.max(1, waits and strangers or strangers - ours) then
          enqueue(entry, since)
          --@include queue/ask_first
          askFirst(key, 2)
          tell(publish, channel, '2')
          return nil
        end
      end
      local listens, polls = mine or counted ~= '1' or count[4] ~= 0, nil
      if not mine and (counted ~= '1' or (count[4] or 0) == 0) then
        --@include queue/poller
        polls = pollsIn('~' .. to, since)
      end
      if polls == false then
        enqueue(entry, since)
        passed = passed + 1
        if passed == 8 then
          --@include queue/ask_first
          askFirst(key, 0)
          return nil
        end
      else
        local token, receivers = '0', mine and 1 or 0
        if tokens ~= '0' and (listens or polls) then
          --@include shared/next_token
          token = nextToken(counter, mark == 't')
        end
        give(to, mine and full or polls and math.min(lease, polls + 1000) or lease)
        if listens and not mine then
          local message = 'grant ' .. kind .. ' ' .. to .. ' ' .. token .. '@' .. since .. ' ' .. key
          receivers = redis.pcall(publish, inbox, message)
        end
        if polls then
          redis.call('zrem', queue, '~' .. to)
        end
        if polls or type(receivers) == 'number' and (receivers > 0 or counted ~= '1') then
          return {to, token}
        end
        redis.call('del', key)
      end
    end
  end
end
