-- Fragment: writes a rate limiter. It expires some time after all requests have drained, when it is
-- like a new one; a rate that was set for all lasts longer.
--@needs key rate whose level place n per moment
local rest = whose == 'set' and 2592000000 or 60000 -- ms
rest = rest + math.min(math.ceil(level * per / n / 1000), 9 * 10 ^ 12)
redis.call('set', key, string.format('rate %s %s %.17g %s %.0f', rate, whose, level, moment, place),
  'px', string.format('%.0f', rest))
