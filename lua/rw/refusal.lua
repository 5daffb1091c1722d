-- Fragment: refusal(pause, mode, stranger, since, pollIn) returns the reply to an owner that is refused,
-- after findLast and look of rw/state.lua.
--
--   pause     ms after which to retry, -1 if the lock has no expiry
--   mode      of the lock, nil if nobody holds it against the owner: waiting owners of the other side go
--             first
--   stranger  whether a holder is known to be of Redisson
--   since     the score of the entry if it waits in the queue, or nil
--   pollIn    ms after which a poller in the queue is to poll, or nil
--
-- Reply   array: pause; mode, '' for nil; the field of a holder, '' if that is not known or there is none;
--         'redisson' if a holder is known to be of Redisson, else 'others' if there are other holders, else
--         ''; since; pollIn
--
-- The holder is the one with the longest lease, because its lease is what is left.
--@include rw/state
local function refusal(pause, mode, stranger, since, pollIn)
  if not mode then
    return {pause, '', '', '', since, pollIn}
  end
  local holder, more = lasts() and other or found or '', ''
  if stranger then
    more = 'redisson'
  elseif mode == 'read' and nextEnd and nextEnd > clock() then
    more = 'others'
  end
  return {pause, mode, holder, more, since, pollIn}
end
