package tests

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A job is due once per tick, and the clocks of its schedulers differ.

// A tick takes 10 units. The lock stays taken for 6, which is longer than the clocks differ: the clock of each
// scheduler is one unit behind the previous one.
const (
	tickUnit  = 3 * time.Millisecond
	tickUnits = 10
	tickLeast = 6
)

// tickScale makes ticks longer if there are few, so that schedulers are not late in all of them.
func tickScale(ticks int) time.Duration {
	if ticks < 1000 {
		return 3 * tickUnit
	}
	return tickUnit
}

// tickAttempt is what one scheduler did in one tick. Its times are those of the server.
type tickAttempt struct {
	tick          int
	before, after time.Duration // the attempt
	ran           bool
	unlocked      time.Duration // after the release, if it ran
}

// Three schedulers do a short job once per tick, and a late scheduler does not delay the next tick. The checks use the
// server's clock and do not depend on when the schedulers run: two runs never begin within the minimum time of the
// lock, and each tick in which all three tried within that time has exactly one run.
func TestAtLeastOncePerTick(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name, ticks := rig.Shared(), rig.Name(t), rig.Sized(1000)
		unit := tickScale(ticks)
		least := tickLeast * unit
		all := make([]tickAttempt, 3*ticks)
		var clocks [3]rueidis.Client
		var locks [3]anyLock
		for i := range locks {
			clocks[i], locks[i] = server.Raw(t), k.open(connect(t, server), name)
		}
		for n := range ticks {
			start := time.Now()
			var schedulers sync.WaitGroup
			for i := range locks {
				schedulers.Go(func() {
					<-time.After(time.Until(start.Add(time.Duration(i) * unit)))
					all[3*n+i] = attemptTick(t, clocks[i], locks[i], n, least)
				})
			}
			schedulers.Wait()
			<-time.After(time.Until(start.Add(tickUnits * unit)))
		}
		runs := checkGaps(t, all, least)
		judged := checkTicks(t, all, least)
		t.Logf("%d ticks, %d runs; %d ticks in which all asked in time", ticks, runs, judged)
		assert.Positive(t, judged)
		rig.Eventually(t, soon, "the lock is free", free(rig.NewAdmin(t, server), name))
	})
}

// attemptTick is what a scheduler does in each tick.
func attemptTick(t *testing.T, clock rueidis.Client, lock anyLock, n int, least time.Duration) tickAttempt {
	a := tickAttempt{tick: n, before: serverTime(t, clock)}
	hold, err := lock.TryLock(t.Context(), latchkey.AtLeast(least))
	a.after = serverTime(t, clock)
	if err != nil {
		assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
		return a
	}
	a.ran = true
	if err := hold.Unlock(t.Context()); err != nil {
		assert.ErrorIs(t, err, latchkey.ErrLost, "the lease is as short")
	}
	a.unlocked = serverTime(t, clock)
	return a
}

// checkGaps checks that no two runs began within the minimum time of the lock, and counts the runs. Of two concurrent
// attempts, either may have been first.
func checkGaps(t *testing.T, all []tickAttempt, least time.Duration) (runs int) {
	t.Helper()
	ran := slices.DeleteFunc(slices.Clone(all), func(a tickAttempt) bool { return !a.ran })
	slices.SortFunc(ran, func(a, b tickAttempt) int { return cmp.Compare(a.before, b.before) })
	for i, a := range ran[1:] {
		apart := max(a.after-ran[i].before, ran[i].after-a.before)
		assert.GreaterOrEqual(t, apart, least-time.Millisecond, "ticks %d and %d", ran[i].tick, a.tick)
	}
	return len(ran)
}

// checkTicks checks that a tick has exactly one run if the lock was free at its start and all tried within the minimum
// time. It counts these ticks.
func checkTicks(t *testing.T, all []tickAttempt, least time.Duration) (judged int) {
	t.Helper()
	slices.SortStableFunc(all, func(a, b tickAttempt) int { return cmp.Compare(a.tick, b.tick) })
	freeFrom := time.Duration(0)
	for each := range slices.Chunk(all, 3) {
		first, last, runs := each[0].before, each[0].after, 0
		from := freeFrom
		for _, a := range each {
			first, last = min(first, a.before), max(last, a.after)
			if a.ran {
				runs++
				freeFrom = max(freeFrom, a.unlocked+least+2*time.Millisecond)
			}
		}
		if first > from && last-first < least-time.Millisecond {
			judged++
			assert.Equal(t, 1, runs, "runs in tick %d: %v", each[0].tick, each)
		}
	}
	return judged
}

// serverTime returns the time of the server's clock.
func serverTime(t *testing.T, client rueidis.Client) time.Duration {
	t.Helper()
	reply, err := client.Do(t.Context(), client.B().Time().Build()).AsStrSlice()
	require.NoError(t, err)
	seconds, _ := strconv.ParseInt(reply[0], 10, 64)
	micros, _ := strconv.ParseInt(reply[1], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond
}
