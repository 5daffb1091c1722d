package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// scriptTimes returns how long the scripts take that a server executes during meanwhile, according
// to its slow log, the shortest first.
func scriptTimes(t testing.TB, admin *rig.Admin, meanwhile func()) []time.Duration {
	t.Helper()
	admin.Do("CONFIG", "SET", "slowlog-max-len", "100000")
	admin.Do("CONFIG", "SET", "slowlog-log-slower-than", "0")
	admin.Do("SLOWLOG", "RESET")
	meanwhile()
	entries, err := admin.Do("SLOWLOG", "GET", "100000").ToArray()
	require.NoError(t, err)
	var times []time.Duration
	for _, entry := range entries {
		fields, err := entry.ToArray()
		require.NoError(t, err)
		words, err := fields[3].AsStrSlice()
		require.NoError(t, err)
		if words[0] != "EVALSHA" && words[0] != "EVAL" {
			continue
		}
		took, err := fields[2].AsInt64()
		require.NoError(t, err)
		times = append(times, time.Duration(took)*time.Microsecond)
	}
	slices.Sort(times)
	return times
}

// strangers puts n waiters of another client at the end of the queue. They are alive for the given
// time, or dead if that is negative.
func strangers(t testing.TB, server *rig.Server, name string, n int, alive time.Duration) {
	t.Helper()
	const fill = `
		local now = redis.call('time')[1] * 1000
		local alive = now + tonumber(ARGV[3])
		for i = 1, tonumber(ARGV[1]) do
		  local owner = '55555555-5555-4555-8555-555555555555:' .. ARGV[2] .. i
		  redis.call('rpush', KEYS[1], owner)
		  redis.call('zadd', KEYS[2], alive, owner)
		  redis.call('hset', KEYS[3], owner, string.format('%.0f:%.0f', now * 1000 + i, alive))
		end`
	raw := server.Raw(t)
	for i := range n / 100 {
		require.NoError(t, ignoreNil(raw.Do(context.Background(), raw.B().Eval().Script(fill).Numkeys(3).
			Key(queueOf(name), deadlinesOf(name), notesOf(name)).Arg("100", strconv.Itoa(i)+"x"+strconv.FormatInt(time.Now().UnixNano(), 36),
			strconv.FormatInt(alive.Milliseconds(), 10)).Build()).Error()))
	}
}

func queueSome(ctx context.Context, t testing.TB, admin *rig.Admin, client *latchkey.Client, name string, n int) <-chan acquisition {
	t.Helper()
	before := admin.Int("LLEN", queueOf(name))
	acquired := make(chan acquisition, n)
	for range n {
		waiter := lockInBackground(ctx, client.NewFairLock(name))
		go func() { acquired <- <-waiter }()
	}
	rig.Eventually(t, soon, "they are in the queue", func() error {
		if got := admin.Int("LLEN", queueOf(name)) - before; got < int64(n) {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	return acquired
}

const (
	passDead = "pass over the dead"
	tryDead  = "try where all are dead"
)

// fairCosts measures the cost of the scripts of a fair lock in a queue of n.
func fairCosts(t *testing.T, n int) map[string][]time.Duration {
	t.Helper()
	const some = 50
	server, name := rig.Fresh(t), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	costs := map[string][]time.Duration{}
	phase := func(what string, do func()) { costs[what] = scriptTimes(t, admin, do) }
	leave := func(cancel context.CancelFunc, acquired <-chan acquisition) {
		// They are behind the first strangers.
		owners := admin.Strings("LRANGE", queueOf(name), strconv.Itoa(n), strconv.Itoa(n+some-1))
		cancel()
		for range some {
			require.Error(t, rig.Await(t, soon, "a waiter leaves", acquired).err)
		}
		rig.Eventually(t, soon, "they have left", func() error { // in the background
			for _, owner := range owners { // from the middle of the queue they are only marked for removal
				if note := admin.Text("HGET", notesOf(name), owner); note != "" && !strings.HasSuffix(note, ":0") {
					return fmt.Errorf("%s has not", owner)
				}
			}
			return nil
		})
	}

	holder := mustLock(t, client.NewFairLock(name))
	strangers(t, server, name, n, time.Hour)
	var acquired <-chan acquisition
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	phase("join the queue", func() { acquired = queueSome(ctx, t, admin, client, name, some) })
	phase("refresh 50 waiters", func() {
		last := admin.Text("LINDEX", queueOf(name), "-1")
		before := admin.Text("HGET", notesOf(name), last)
		rig.Eventually(t, soon, "the last waiter is refreshed", func() error {
			if admin.Text("HGET", notesOf(name), last) == before {
				return errors.New("it is not")
			}
			return nil
		})
	})
	phase("leave its end", func() { leave(cancel, acquired) })
	phase("try", func() {
		for range some {
			_, err := client.NewFairLock(name).TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
	})
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	acquired = queueSome(ctx, t, admin, client, name, some)
	strangers(t, server, name, n, time.Hour)
	phase("leave its middle", func() { leave(cancel, acquired) })
	mustUnlock(t, holder)
	admin.Do("FLUSHALL")

	holder = mustLock(t, client.NewFairLock(name))
	acquired = queueSome(t.Context(), t, admin, client, name, some)
	strangers(t, server, name, n, time.Hour)
	phase("hand over", func() {
		for range some {
			mustUnlock(t, holder)
			holder = rig.Await(t, soon, "the next", acquired).hold
		}
	})
	admin.Do("FLUSHALL")

	strangers(t, server, name, n, time.Hour)
	admin.Do("DEL", notesOf(name)) // so that they look like waiters of Redisson
	phase("come and go behind Redisson", func() {
		for range some {
			_, err := client.NewFairLock(name).Lock(t.Context(), latchkey.Wait(5*time.Millisecond))
			require.Error(t, err)
		}
	})
	admin.Do("FLUSHALL")

	var tries []time.Duration
	for range 5 {
		strangers(t, server, name, n, -time.Hour)
		phase(tryDead, func() {
			hold, err := client.NewFairLock(name).TryLock(t.Context())
			require.NoError(t, err)
			mustUnlock(t, hold)
		})
		tries = append(tries, costs[tryDead]...)
	}
	slices.Sort(tries)
	costs[tryDead] = tries

	holder = mustLock(t, client.NewFairLock(name))
	strangers(t, server, name, n, -time.Hour)
	strangers(t, server, name, 100, time.Minute) // otherwise all would be removed at once
	phase(passDead, func() {
		waiter := lockInBackground(t.Context(), client.NewFairLock(name))
		rig.Eventually(t, soon, "the dead are gone", func() error {
			if left := admin.Int("LLEN", queueOf(name)); left != 101 {
				return fmt.Errorf("%d in the queue", left)
			}
			return nil
		})
		admin.Do("DEL", queueOf(name), deadlinesOf(name))
		mustUnlock(t, holder)
		holder = rig.Await(t, soon, "the one behind the dead", waiter).hold
	})
	mustUnlock(t, holder)
	return costs
}

// The scripts of a fair lock cost the same in a queue of a hundred and of fifty thousand: less than
// a millisecond by the clock of the server.
func TestFairScriptsDoNotGrow(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Settings|rig.Stats|rig.Private)
	// Passing over dead waiters is bounded, but by more than a hundred.
	checkScriptTimes(t, fairCosts, 20_000, func(what string) bool { return what != passDead })
}

// checkScriptTimes checks that scripts take less than a millisecond with many waiters, or less than
// twice as long as with a hundred, and, where asked, no longer than with a hundred. Other load can
// only make them slower, so each kind of script gets several chances.
func checkScriptTimes(t *testing.T, measure func(t *testing.T, n int) map[string][]time.Duration, many int, asked func(what string) bool) {
	t.Helper()
	faults := map[string]string{}
	for chance := range costChances {
		small, large := measure(t, 100), measure(t, many)
		for _, what := range slices.Sorted(maps.Keys(large)) {
			if _, open := faults[what]; chance > 0 && !open {
				continue
			}
			s, l := small[what], large[what]
			t.Logf("%-36s beside 100: median %4v, longest %5v; beside many: median %4v, longest %5v, over %d scripts",
				what, median(s), s[len(s)-1], median(l), l[len(l)-1], len(l))
			delete(faults, what)
			if fault := tooSlow(s, l, asked(what)); fault != "" {
				faults[what] = fault
			}
		}
		if len(faults) == 0 {
			return
		}
	}
	require.Empty(t, faults, "%d times", costChances)
}

const costChances = 5

// tooSlow returns what is wrong with the sorted times for a hundred and for many waiters.
func tooSlow(small, large []time.Duration, alike bool) string {
	most, control := upperQuartile(large), upperQuartile(small)
	if !alike {
		control = small[len(small)-1] // one script passes over all of the hundred
	}
	switch {
	case alike && median(large) >= 4*median(small)+50*time.Microsecond:
		return fmt.Sprintf("it grows: from %v to %v", median(small), median(large))
	case most >= max(time.Millisecond, 2*control): // on a slow machine a few scripts with cold caches take as long beside a hundred
		return fmt.Sprintf("three of four take up to %v, beside 100 up to %v", most, control)
	}
	return ""
}

// upperQuartile returns what three of four of the sorted times do not exceed.
func upperQuartile(times []time.Duration) time.Duration { return times[(len(times)-1)*3/4] }

// median returns the median of sorted times.
func median(times []time.Duration) time.Duration { return times[len(times)/2] }

// ignoreNil drops the error of a nil reply.
func ignoreNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}
