-- Fragment: permits that are kept for an acquisition that has waited long. In addition to
-- clock.lua it needs the locals reserve, and me, which names the acquisition.
--
--   reserve  string, five words about the last reservation: its acquisition, how many permits,
--            ms at which it began, ms at which it ends, and its bar in ms
--
-- A reservation lasts until the permits are acquired, or the waiter gives up or shows no
-- sign of life, and for one bar at most. After that no permits are kept for anybody for as
-- long as the reservation lasted, and its waiter lets others go first for slightly longer. If
-- the bar was too short, the next one is twice as long, up to a minute. So a request that can
-- never be satisfied takes permits from others for half of the time, and a large request gets
-- them when a bar is longer than the others use them.
local longestBar = 60000

-- reserved returns the last reservation, nil if none is remembered. It ignores a reservation that
-- begins in the future: the server's clock was set back, and it would last until then.
local function reserved()
  local text = redis.call('get', reserve) or ''
  local who, n, since, ends, bar = string.match(text, '^(%S+) (%d+) (%d+) (%d+) (%d+)$')
  if who and tonumber(since) <= clock() then
    return {who = who, n = tonumber(n), since = tonumber(since), ends = tonumber(ends), bar = tonumber(bar)}
  end
end

-- reserveFor notes a reservation. It is remembered for one bar after the pause that follows it.
local function reserveFor(n, since, ends, bar)
  local text = string.format('%s %.0f %.0f %.0f %.0f', me, n, since, ends, bar)
  redis.call('set', reserve, text, 'px', string.format('%.0f', 2 * ends - since + bar - now))
end

-- keptForOthers returns how many permits are kept for others, and for how many more ms.
local function keptForOthers(last)
  if last and last.who ~= me and clock() < last.ends then
    return last.n, last.ends - now
  end
  return 0, -1
end

-- keep keeps n permits for this acquisition, if it is its turn. The acquisition counts as alive
-- for ms, which is also the shortest bar.
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
      pause = pause + ms / 4 -- the others retry after each fifth of it
    end
    if now < last.ends + pause then
      return
    end
    local tooShort = last.ends - last.since >= last.bar
    bar = math.min(math.max(ms, tooShort and 2 * last.bar or last.bar), longestBar)
  end
  reserveFor(n, since, math.min(since + bar, now + ms), bar)
end

-- letGo ends the reservation of this acquisition, and reports whether it had one.
local function letGo(last)
  if not last or last.who ~= me or clock() >= last.ends then
    return false
  end
  reserveFor(0, last.since, now, last.bar)
  return true
end
