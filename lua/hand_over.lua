-- Fragment: handOver(kind, key, give, next, full, head) calls toFirst (see to_first.lua). If nobody in the
-- queue gets the lock, it notifies strangers that the lock is free. It returns the reply of a release:
-- an array of the new owner and its first token, or how many subscribers received the message that the
-- lock is free. It never fails: a lock that cannot be handed over is free.
--@include to_first

local function handOver(kind, key, give, next, full, head)
  if queue then
    local worked, granted = pcall(toFirst, kind, key, give, next, full, nil, head)
    if worked and granted then
      return granted
    end
  end
  return tell(publish, channel)
end
