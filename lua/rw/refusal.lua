-- Fragment: refusal(pause, mode, stranger, since, pollIn) returns the reply to an owner that is refused,
-- after findLast and look of rw/state.lua. It is an array of
--
--   pause   ms after which to retry, -1 if the lock has no expiry
--   mode    of the lock; nil, or '' in the reply, if nobody holds it against the owner: waiting owners of the
--           other side go first
--   holder  field of the holder with the longest lease, which is what is left; '' if that is not known
--   more    'redisson' if stranger says that a holder is of Redisson, else 'others' if others hold it too, else ''
--   since   the score of the entry if it waits in the queue, or nil
--   pollIn  ms after which a poller in the queue is to poll, or nil
--@include rw/state
local function refusal(pause, mode, stranger, since, pollIn)
  local holder, more = mode and (lasts() and other or found) or '', ''
  if stranger then
    more = 'redisson'
  elseif mode == 'read' and nextEnd and nextEnd > clock() then
    more = 'others'
  end
  return {pause, mode or '', holder, more, since, pollIn}
end
