package rate_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// limiter drives one limiter by its bare scripts, on a server whose clock stands still until the
// test moves it.
type limiter struct {
	*testredis.Clocked

	t      *testing.T
	now    int64 // µs
	own    string
	number int
}

const key, note = "api", "latchkey_op:{api}:test:1"

// eachServer runs a test on a real server and on the embedded one, with a limiter of that rate.
func eachServer(t *testing.T, own string, test func(t *testing.T, l *limiter)) {
	t.Helper()
	run := func(t *testing.T, s *testredis.Clocked) {
		t.Helper()
		test(t, &limiter{Clocked: s, t: t, now: testredis.Epoch, own: own})
	}
	t.Run("server", func(t *testing.T) {
		s, without := testredis.Real(t)
		if s == nil {
			t.Skip(without)
		}
		run(t, s)
	})
	t.Run("embedded", func(t *testing.T) { run(t, testredis.Embedded(t)) })
}

func (l *limiter) pass(d time.Duration) {
	l.now += d.Microseconds()
	l.Set(l.now)
}

func (l *limiter) take(count, longest int64) any {
	return l.Run(script.RateTake, []string{key}, l.own, strconv.FormatInt(count, 10), strconv.FormatInt(longest, 10))
}

// reserve returns the wait of count requests, and how to give them back.
func (l *limiter) reserve(count int64) (wait int64, cancel func() any) {
	l.t.Helper()
	granted, is := l.take(count, math.MaxInt32*int64(time.Second/time.Microsecond)).([]any)
	require.True(l.t, is)
	wait, at, place := granted[0].(int64), granted[1].(int64), granted[2].(int64)
	require.Equal(l.t, l.now+wait, at)
	number := ""
	return wait, func() any {
		if number == "" {
			l.number++
			number = strconv.Itoa(l.number)
		}
		return l.Run(script.RateCancel, []string{key, note}, number, l.own,
			strconv.FormatInt(count, 10), strconv.FormatInt(at, 10), strconv.FormatInt(place, 10))
	}
}

func (l *limiter) waits(count int64) int64 {
	l.t.Helper()
	wait, _ := l.reserve(count)
	return wait
}

func (l *limiter) set(wanted string) any {
	l.number++
	return l.Run(script.RateSet, []string{key, note}, strconv.Itoa(l.number), l.own, wanted)
}

func (l *limiter) allows(count int64) bool {
	_, is := l.take(count, 0).([]any)
	return is
}

func (l *limiter) stored() string {
	l.t.Helper()
	return l.State(key)[0].Text
}

// The key, to the byte.
func TestRateScripts_golden(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		require.Equal(t, []any{int64(0), l.now, l.now + 3}, l.take(3, 0))
		require.Equal(t, "rate 10/1000000/5 own 3 1900000000000000 1900000000000003", l.stored())
		require.Equal(t, int64(300+60_000), l.State(key)[0].TTL)
		require.Equal(t, int64(1), l.set("7/2000000/9"))
		require.Equal(t, "rate 7/2000000/9 set 3 1900000000000000 1900000000000003", l.stored())
		require.Equal(t, int64(858+30*24*3600*1000), l.State(key)[0].TTL)
		require.Equal(t, int64(1), l.set(""))
		require.Equal(t, "rate 7/2000000/9 own 3 1900000000000000 1900000000000003", l.stored(), "until the next request")
		require.Equal(t, []string{key, note}, l.keys())
	})
}

func (l *limiter) keys() (keys []string) {
	for _, each := range l.Must("KEYS", "*").([]any) {
		keys = append(keys, each.(string))
	}
	if len(keys) == 2 && keys[0] != key {
		keys[0], keys[1] = keys[1], keys[0]
	}
	return keys
}

// The burst goes at once, then one request each interval, in order, large ones too.
func TestRateScripts_turns(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		for range 5 {
			require.True(t, l.allows(1))
		}
		require.Equal(t, int64(100_000), l.take(1, 0), "the wait of what is refused")
		require.Equal(t, int64(500_000), l.waits(5))
		require.Equal(t, int64(600_000), l.waits(1))
		require.Equal(t, int64(700_000), l.take(1, 699_999))
		l.pass(600*time.Millisecond - time.Microsecond)
		require.False(t, l.allows(1), "others have reserved")
		l.pass(100*time.Millisecond + time.Microsecond)
		require.True(t, l.allows(1))
		require.False(t, l.allows(1))
		l.pass(time.Minute)
		require.False(t, testredis.HasCode(l.take(5, 0), "LATCHKEY_BURST"))
		require.True(t, testredis.HasCode(l.take(6, 0), "LATCHKEY_BURST 5"))
	})
}

// Rates whose intervals are no whole µs are used in full, and not exceeded.
func TestRateScripts_fractions(t *testing.T) {
	eachServer(t, "7/1000000/1", func(t *testing.T, l *limiter) {
		var last int64
		for range 700 {
			last = l.waits(1)
		}
		require.InDelta(t, 699*1e6/7, last, 1)
		require.GreaterOrEqual(t, last, int64(math.Ceil(699*1e6/7)))
	})
	eachServer(t, "3000000/1000000/1", func(t *testing.T, l *limiter) {
		var last int64
		for range 100 {
			last = l.waits(1)
		}
		require.Equal(t, int64(33), last)
	})
}

// A canceled reservation gives back what nobody has reserved behind it, once.
func TestRateScripts_cancel(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(5))
		_, first := l.reserve(5)
		_, second := l.reserve(2)
		require.Equal(t, int64(3), first())
		require.Equal(t, int64(3), first(), "a late copy")
		require.Equal(t, int64(500_000), l.waits(1), "the level is 9, not 12")
		_, last := l.reserve(4)
		require.Equal(t, int64(4), last())
		require.Equal(t, int64(1), second())
		require.Equal(t, int64(500_000), l.waits(1))

		l.pass(time.Minute)
		require.True(t, l.allows(5))
		_, passed := l.reserve(1)
		l.pass(100 * time.Millisecond)
		stored := l.stored()
		require.Equal(t, int64(0), passed(), "it may have gone")
		require.Equal(t, stored, l.stored())

		_, lost := l.reserve(1)
		l.Must("DEL", key)
		require.Equal(t, int64(0), lost())
		require.Empty(t, l.stored())
	})
}

// A rate that is set counts for all at once, and reserved requests count as many as before.
func TestRateScripts_set(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(5))
		require.Equal(t, int64(200_000), l.waits(2))
		require.Equal(t, int64(1), l.set("1/1000000/2"))
		require.Equal(t, int64(6_000_000), l.waits(1), "8 requests, of which 2 go at once")
		require.True(t, testredis.HasCode(l.take(3, 0), "LATCHKEY_BURST 2"))
		require.Equal(t, int64(1), l.set("100/1000000/10"))
		require.True(t, l.allows(2))
		require.Equal(t, int64(10_000), l.waits(1))

		l.pass(10 * time.Second)
		l.own = "3/1000000/3"
		require.True(t, l.allows(10), "the caller's own rate does not count")
		require.Equal(t, int64(1), l.set(""))
		require.True(t, testredis.HasCode(l.take(4, 0), "LATCHKEY_BURST 3"))
		require.Equal(t, int64(3_333_334), l.waits(3))
	})
}

// Callers with different rates: from one call to the next, that of the first counts.
func TestRateScripts_own_rates(t *testing.T) {
	eachServer(t, "1/1000000/10", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(10))
		l.pass(2 * time.Second)
		l.own = "100/1000000/10"
		require.Equal(t, int64(0), l.waits(2))
		require.Equal(t, int64(10_000), l.waits(1))
	})
}

// If the clock is set back, nobody waits for it to catch up.
func TestRateScripts_clock_set_back(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(5))
		l.pass(-time.Hour)
		require.False(t, l.allows(1))
		l.pass(100 * time.Millisecond)
		require.True(t, l.allows(1))
	})
}

// What was reserved since is still counted after a cancel, although a change of the rate has let
// the rest drain.
func TestRateScripts_cancel_after_a_faster_rate(t *testing.T) {
	eachServer(t, "1/3600000000/100", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(100))
		_, cancel := l.reserve(100)
		require.Equal(t, int64(1), l.set("100/1000000/100"))
		l.pass(1990 * time.Millisecond)
		require.True(t, l.allows(50))
		cancel()
		require.True(t, l.allows(50))
		require.False(t, l.allows(2))
	})
}

// To let each caller have its own rate again, a caller need not know it.
func TestRateScripts_own_again(t *testing.T) {
	eachServer(t, "10/3600000000/10", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(10))
		mine := l.own
		l.own = "1/1000000/1"
		require.Equal(t, int64(1), l.set(""))
		l.own = mine
		l.pass(10 * time.Second)
		require.False(t, l.allows(1))
	})
	eachServer(t, "10/3600000000/10", func(t *testing.T, l *limiter) {
		require.Equal(t, int64(1), l.set(""))
		require.Empty(t, l.stored())
	})
}

// A wait of centuries, after the rate was lowered, is not a negative number.
func TestRateScripts_longest_wait(t *testing.T) {
	eachServer(t, "2147483647/1000/2147483647", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(2147483647))
		require.Equal(t, int64(1), l.set("1/31622400000000/1"))
		require.Equal(t, int64(9e15), l.take(1, 0))
	})
}

// An idle limiter is gone when it is like a new one.
func TestRateScripts_expiry(t *testing.T) {
	eachServer(t, "1/60000000/5", func(t *testing.T, l *limiter) {
		require.True(t, l.allows(5))
		l.pass(5*time.Minute + 59*time.Second)
		require.NotEmpty(t, l.stored())
		l.pass(2 * time.Second)
		require.Empty(t, l.stored())
		require.True(t, l.allows(5))
	})
}

// Data of others is not touched.
func TestRateScripts_wrong_kind(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		for _, put := range []string{
			"HSET api a 1", "SET api 5", "SET api rate", "RPUSH api a",
			"SET api rate_10/1000000/5_own_3_1900000000000000", "SET api rate_10/1000000/5_own_3_1_2_3",
		} {
			words := strings.Fields(put)
			for i := range words[1:] {
				words[i+1] = strings.ReplaceAll(words[i+1], "_", " ")
			}
			l.Must("DEL", key, note)
			l.Must(words...)
			before := l.State(key)
			for _, reply := range []any{l.take(1, 0), l.set("1/1000/1"),
				l.Run(script.RateCancel, []string{key, note}, "99", l.own, "1", "2900000000000000", "1")} {
				require.True(t, testredis.HasCode(reply, "WRONGTYPE"), "%s: %v", put, reply)
			}
			require.Equal(t, before, l.State(key))
			require.Equal(t, []string{key}, l.keys())
		}
	})
}

// On a server without memory nothing is let through, and what was reserved is given back.
func TestRateScripts_out_of_memory(t *testing.T) {
	eachServer(t, "10/1000000/5", func(t *testing.T, l *limiter) {
		if l.Full == nil { // the embedded server has no limit
			return
		}
		require.True(t, l.allows(5))
		_, cancel := l.reserve(5)
		l.Full(true)
		defer l.Full(false)
		stored := l.stored()
		require.True(t, testredis.HasCode(l.take(1, math.MaxInt32), "OOM"))
		require.True(t, testredis.HasCode(l.set("1/1000/1"), "OOM"))
		require.Equal(t, stored, l.stored())
		require.Equal(t, int64(100_000*6), l.take(1, 0), "a refusal needs no memory")
		require.Equal(t, int64(5), cancel())
		require.Equal(t, int64(100_000), l.take(1, 0))
	})
}

// In no window of time does the limiter let more through than the burst and the rate: a million
// random requests, or some thousands with -short. Of each, the time at which it goes is known.
func TestRateScripts_never_exceeds_the_rate(t *testing.T) {
	for _, own := range []string{"10/1000000/5", "7/1000000/7", "1000/1000000/1", "250000/1000000/1000"} {
		eachServer(t, own, func(t *testing.T, l *limiter) {
			parts := strings.Split(own, "/")
			n, _ := strconv.ParseFloat(parts[0], 64)
			burst, _ := strconv.Atoi(parts[2])
			random := rand.New(rand.NewPCG(1, uint64(burst)))
			w := window{perMicro: n / 1e6, burst: float64(burst)}
			interval := 1 / w.perMicro
			requests := 250_000
			if testing.Short() || l.Name == "embedded" {
				requests = 2_000
			}
			for range requests {
				if random.IntN(20) == 0 {
					l.pass(time.Duration(random.Float64() * interval * 3 * float64(time.Microsecond) * float64(burst)))
				} else {
					l.pass(time.Duration(random.Float64() * 2 * interval * float64(time.Microsecond)))
				}
				count := int64(1 + random.IntN(min(burst, 5)))
				longest := int64(random.IntN(3)) * int64(interval*10)
				if reply, is := l.take(count, longest).([]any); is {
					w.goes(t, reply[1].(int64), float64(count))
				}
			}
			require.Positive(t, w.all)
		})
	}
}

// window checks requests in the order in which they go: no window may have more than the burst and
// the rate. That is so if a bucket that drains at the rate never has more than the burst.
type window struct {
	perMicro, burst float64
	level, all      float64
	at              int64
}

func (w *window) goes(t *testing.T, at int64, count float64) {
	t.Helper()
	require.GreaterOrEqual(t, at, w.at, "they go in the order of their reservations")
	w.level = max(0, w.level-float64(at-w.at)*w.perMicro) + count
	w.at = at
	w.all += count
	require.LessOrEqual(t, w.level, w.burst+w.perMicro+1e-6, "more than the times, in whole µs, explain")
}
