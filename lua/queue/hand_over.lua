-- Fragment: handOver(kind, give, next, full, waits) grants a lock that has become free to the first owner in
-- its queue whose client listens, or leaves it free for strangers. First it puts the entry next at the end of
-- the queue, unless that is ''. counter is the key of the fencing tokens. owner was already used and gets no
-- grant.
--
-- The queue is a sorted set. An entry is '<owner> <lease> <tokens>'. The owner is the id of a client, a colon
-- and a number. The lease in ms is what a grant gives it. The tokens are 1 if a grant issues a fencing token,
-- else 0, followed by t if it must not fall below the server's clock, or by the kind s or w: the owner wants a
-- mutex, or to write. The score is the time of the server, in µs, when the entry came.
--
-- Strangers are Redisson and all others that wait on channel and not in the queue. Each that listens has its
-- turn as often as a client in the queue, by the microsecond in which the script runs. Then the lock stays
-- free, and the client of the first listening waiter receives a message to retry after a short pause:
-- 'ask <ms> <owner> <key>'. If waits is nil, the clients in the queue usually listen on channel too: a message
-- that Redisson ignores tells them to pause.
--
-- To grant, handOver makes an owner the owner of the lock by the function give, and sends to its client
-- 'grant <kind> <owner> <token>@<score> <key>'. It sends nothing for the entry next, which gets the lease full
-- and whose client reads the reply. shared/listened.lua says why it writes the lock before it sends the message.
--
-- A poller (see queue/poller.lua) that is about to poll is granted the lock without a message, for a second
-- longer than until then. Another poller is passed over, and keeps its place; after 8 of them the lock stays free.
--
-- handOver drops entries whose clients do not listen, those for which it issues no token, those that an old
-- queue brings back after their use, and those for another kind of lock; 64 at most.
--
-- It returns an array of the new owner and its token, or nil if the lock stays free, as it does if an error
-- prevents a grant.
--@needs key queue counter prefix suffix publish counted channel owner
--@include shared/tell
--@include shared/clock
local function grantFirst(kind, give, next, full, waits)
  --@include queue/enqueue
  if next ~= '' then
    enqueue(next)
  end
  local numsub = publish == 'PUBLISH' and 'numsub' or 'shardnumsub'
  local passed = 0 -- pollers at the head of the queue
  for _ = 1, 64 do
    local entry, since = unpack(redis.call('zrange', queue, passed, passed, 'withscores'))
    if not entry or string.sub(entry, 1, 1) == '~' then
      return nil
    end
    local to, client, lease, tokens, mark = string.match(entry, '^((%S+):%d+) (%d+) (%d+)(%a?)$')
    local mine, inbox, listens, polls = entry == next, nil, nil, nil
    if to and to ~= owner and (mark == kind or kind == 'h' and (mark == '' or mark == 't')) then
      inbox = prefix .. client .. suffix
      local count = waits and redis.pcall('pubsub', numsub, channel, inbox, waits)
        or redis.pcall('pubsub', numsub, channel, inbox)
      local strangers, ours = (count[2] or 0) - (count[6] or 0), redis.call('zcard', queue)
      if strangers > 0 and redis.call('time')[2] % ours < math.max(1, waits and strangers or strangers - ours) then
        --@include queue/ask_first
        askFirst(2)
        tell(publish, channel, '2')
        return nil
      end
      listens = mine or counted ~= '1' or count[4] ~= 0
      if not mine and (counted ~= '1' or (count[4] or 0) == 0) then
        --@include queue/poller
        polls = pollsIn('~' .. to, since)
      end
    end
    if polls == false then
      passed = passed + 1
      if passed == 8 then
        --@include queue/ask_first
        askFirst(0)
        return nil
      end
    else
      redis.call('zrem', queue, entry, polls and '~' .. to or '')
      if inbox then
        local token, receivers = '0', 0
        if tokens ~= '0' and (listens or polls) then
          --@include shared/next_token
          token = nextToken(counter, mark == 't')
        end
        give(to, mine and full or polls and math.min(lease, polls + 1000) or lease)
        if listens and not mine then
          local message = 'grant ' .. kind .. ' ' .. to .. ' ' .. token .. '@' .. since .. ' ' .. key
          receivers = tell(publish, inbox, message)
        end
        if mine or polls or receivers > 0 or receivers == 0 and counted ~= '1' then
          return {to, token}
        end
        redis.call('del', key)
      end
    end
  end
end

local function handOver(...)
  if queue then
    local worked, granted = pcall(grantFirst, ...)
    return worked and granted or nil
  end
end
