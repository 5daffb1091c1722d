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

// A job that is due once in a tick, for schedulers whose clocks differ.

// A tick takes 10 units; the lock stays taken for 6, longer than the clocks differ; that of each scheduler
// is one behind the one before.
const (
	tickUnit  = 3 * time.Millisecond
	tickUnits = 10
	tickLeast = 6
)

// tickScale makes ticks longer where there are few, so that schedulers that are late for some are not for all.
func tickScale(ticks int) time.Duration {
	if ticks < 1000 {
		return 3 * tickUnit
	}
	return tickUnit
}

// tickAttempt is what one scheduler did about one tick. Its times are those of the server.
type tickAttempt struct {
	tick          int
	before, after time.Duration // the attempt
	ran           bool
	unlocked      time.Duration // after the release, if it ran
}

// Three schedulers do a short job once in each tick; one that is late does not make the next tick late. What is checked is checked by the clock of
// the server, whatever the machine does to the schedulers: two runs never begin within the time that
// the lock stays taken, and each tick in which all of them asked within that time has one run.
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

// attemptTick is what a scheduler does when a tick has come.
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

// checkGaps checks that no two runs began within the time that the lock stays taken, and counts them. Of two
// attempts at the same time either may have been first.
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

// checkTicks checks that each tick has one run in which all asked while the lock stayed taken, which was free
// before; and counts these.
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

// serverTime is the clock of the server.
func serverTime(t *testing.T, client rueidis.Client) time.Duration {
	t.Helper()
	reply, err := client.Do(t.Context(), client.B().Time().Build()).AsStrSlice()
	require.NoError(t, err)
	seconds, _ := strconv.ParseInt(reply[0], 10, 64)
	micros, _ := strconv.ParseInt(reply[1], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond
}
