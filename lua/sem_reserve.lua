-- Fragment: permits that are kept for an acquisition that has been waiting for long.
-- Besides clock.lua it needs the locals reserve, and me, which names the acquisition.
--
--   reserve  string, five words, of the last reservation: who, how many permits, since
--            which ms and until which, and its bar
--
-- A reservation lasts until the permits are acquired, or the waiter gives up or shows no
-- sign of life, but for one bar at most. After it nobody has any permits kept for as long
-- as it lasted, and its waiter lets others go first for a moment more. If the bar was too
-- short the next one is twice as long, up to a minute. So a request that can never be
-- satisfied takes permits from others for half of the time, and a large one gets them
-- when one bar outlasts those that are in use.
local longestBar = 60000

-- reserved returns the last reservation, nil if none is remembered. One that begins in the
-- future is from before the server's clock was set back: it would last until then.
local function reserved()
  local text = redis.call('get', reserve) or ''
  local who, n, since, ends, bar = string.match(text, '^(%S+) (%d+) (%d+) (%d+) (%d+)$')
  if who and tonumber(since) <= clock() then
    return {who = who, n = tonumber(n), since = tonumber(since), ends = tonumber(ends), bar = tonumber(bar)}
  end
end

-- reserveFor notes a reservation. It is remembered for one bar after the pause behind it.
local function reserveFor(n, since, ends, bar)
  local text = string.format('%s %.0f %.0f %.0f %.0f', me, n, since, ends, bar)
  redis.call('set', reserve, text, 'px', string.format('%.0f', 2 * ends - since + bar - now))
end

-- keptForOthers returns how many permits are kept for others, and for how many ms yet.
local function keptForOthers(last)
  if last and last.who ~= me and clock() < last.ends then
    return last.n, last.ends - now
  end
  return 0, -1
end

-- keep has n permits kept for this acquisition, if it is its turn. It counts as alive for
-- so many ms, which are also the shortest bar.
local function keep(last, n, ms)
  local since, bar = clock(), ms
  if last and now < last.ends then
    if last.who ~= me then
      return
    end
    since, bar = last.since, last.bar
  elseif last then
    local pause = last.ends - last.since
    if last.who == me then
      pause = pause + ms / 4 -- the others ask each fifth of it
    end
    if now < last.ends + pause then
      return
    end
    local tooShort = last.ends - last.since >= last.bar
    bar = math.min(math.max(ms, tooShort and 2 * last.bar or last.bar), longestBar)
  end
  reserveFor(n, since, math.min(since + bar, now + ms), bar)
end

-- releaseRest ends the reservation of this acquisition, and tells whether it had one.
local function letGo(last)
  if not last or last.who ~= me or clock() >= last.ends then
    return false
  end
  reserveFor(0, last.since, now, last.bar)
  return true
end
