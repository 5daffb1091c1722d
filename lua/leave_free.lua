-- Fragment: a mutex stays free for those who poll for it. It needs what hand_over.lua needs.

-- mayStayFree tells whether it is the turn of those who poll, by the microsecond in which the
-- script runs: each client asks for it as often as if there were no others.
local function mayStayFree()
  local waiting = queue and redis.pcall('zcard', queue)
  return type(waiting) ~= 'number' or waiting < 2 or redis.call('time')[2] % waiting == 0
end

-- leaveFree puts the entry next into the queue, and has the first there ask later.
local function leaveFree()
  if not queue then
    return
  end
  if next ~= '' then
    --@include enqueue
    enqueue(next)
  end
  --@include ask_first
  askFirst(key, ARGV[10])
end
