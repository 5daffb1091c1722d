-- Fragment: handOver(kind, key, give, next, full, first) is toFirst (see to_first.lua), and tells strangers
-- that the lock is free if nobody in the queue has it. It returns what a release replies: an array of
-- the new owner and its first token, or how many subscribers were told that the lock is free. It
-- never fails: a lock that cannot be handed over is free.
--@include to_first

local function handOver(kind, key, give, next, full, first)
  if queue then
    local worked, granted = pcall(toFirst, kind, key, give, next, full, nil, first)
    if worked and granted then
      return granted
    end
  end
  return tell(publish, channel)
end
