-- Fragment: leaves a mutex free for other libraries, which poll for it. next is an entry or ''.
--@needs key queue next openFor

-- mayStayFree reports whether it is the turn of other libraries, by the microsecond in which the
-- script runs: each client requests that turn as often as if it were the only one.
local function mayStayFree()
  local waiting = queue and redis.pcall('zcard', queue)
  return type(waiting) ~= 'number' or waiting < 2 or redis.call('time')[2] % waiting == 0
end

-- leaveFree puts the entry next into the queue, and tells the first there to retry later.
local function leaveFree()
  if not queue then
    return
  end
  if next ~= '' then
    --@include queue/enqueue
    enqueue(next)
  end
  --@include queue/ask_first
  askFirst(key, openFor)
end
