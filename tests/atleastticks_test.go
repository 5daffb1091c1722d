package tests

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A job is due once per tick, and the clocks of its schedulers differ. For the tests a tick is a
// number: all schedulers ask for the lock, and the next tick begins when the lock is free. So it
// does not matter when a busy machine lets a scheduler run, as long as all ask before the lock is
// free again. tickAttempts.late finds the ticks in which the machine was too slow for that.

// tickAttempt is what one scheduler did in one tick. Its times are those of the test.
type tickAttempt struct {
	tick, scheduler int
	before, after   time.Time     // the attempt
	least           time.Duration // the minimum time of the lock
	err             error         // nil: the scheduler ran the job
}

func (a tickAttempt) ran() bool { return a.err == nil }

func (a tickAttempt) String() string {
	const clock = "05.000000"
	return fmt.Sprintf("scheduler %d, %s to %s: %v", a.scheduler, a.before.Format(clock), a.after.Format(clock), a.err)
}

// tickAttempts is what all schedulers did in one tick.
type tickAttempts []tickAttempt

func (all tickAttempts) runs() (n int) {
	for _, a := range all {
		if a.ran() {
			n++
		}
	}
	return n
}

// late reports whether a scheduler may have asked after the minimum time of the lock, when it was
// free again.
func (all tickAttempts) late() bool {
	first, last := all[0].before, all[0].after
	for _, a := range all {
		if a.before.Before(first) {
			first = a.before
		}
		if a.after.After(last) {
			last = a.after
		}
	}
	return last.Sub(first) >= all[0].least-time.Millisecond
}

// checkOnce checks that exactly one scheduler ran the tick, and that the others know why they did
// not. It reports whether it could tell: a late tick proves nothing.
func (all tickAttempts) checkOnce(t *testing.T) bool {
	t.Helper()
	if all.late() {
		return false
	}
	assert.Equal(t, 1, all.runs(), "runs in tick %d: %v", all[0].tick, all)
	for _, a := range all {
		if !a.ran() {
			assert.ErrorIs(t, a.err, latchkey.ErrNotAcquired)
		}
	}
	return true
}

// checkGaps checks that no two runs began within the minimum time of the lock, and counts the runs.
// Of two concurrent attempts, either may have been first.
func checkGaps(t *testing.T, all tickAttempts) (runs int) {
	t.Helper()
	ran := slices.DeleteFunc(slices.Clone(all), func(a tickAttempt) bool { return !a.ran() })
	slices.SortFunc(ran, func(a, b tickAttempt) int { return a.before.Compare(b.before) })
	for i, a := range ran[1:] {
		apart := max(a.after.Sub(ran[i].before), ran[i].after.Sub(a.before))
		assert.GreaterOrEqual(t, apart, ran[i].least-time.Millisecond, "ticks %d and %d", ran[i].tick, a.tick)
	}
	return len(ran)
}

// manyTicks is from how many ticks on nine tenths must be in time: the long form needs an idle
// machine. A busy one may be late in most of a few.
const manyTicks = 1000

// checkShare checks that enough ticks could be judged: nine tenths of many, one of a few.
func checkShare(t *testing.T, judged, asked int) {
	t.Helper()
	if asked < manyTicks {
		assert.Positive(t, judged, "none of %d ticks could be judged", asked)
		return
	}
	assert.GreaterOrEqual(t, 10*judged, 9*asked, "only %d of %d ticks could be judged", judged, asked)
}

// lockGone waits until nothing holds the lock. Its minimum time ends without a message.
func lockGone(t *testing.T, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "the lock is free", func() error {
		if admin.Exists(name) {
			return errors.New("it is taken")
		}
		return nil
	})
}

// Three schedulers do a short job once per tick: each tick has one run, and a late scheduler does
// not delay the next tick.
func TestAtLeastOncePerTick(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name, n := rig.Shared(), rig.Name(t), rig.Count(t, "LATCHKEY_TEST_CRON_TICKS", rig.Sized(200))
		admin := rig.NewAdmin(t, server)
		var locks [3]anyLock
		for i := range locks {
			locks[i] = k.open(connect(t, server), name)
		}
		least, judged := 8*tickLeast, 0
		var all tickAttempts
		for tick := range n {
			each := attemptTick(t, locks[:], tick, least)
			inTime := each.checkOnce(t)
			if inTime {
				judged++
			}
			least = nextLeast(least, inTime)
			all = append(all, each...)
			lockGone(t, admin, name)
		}
		runs := checkGaps(t, all)
		t.Logf("%d ticks, %d runs; %d ticks in which all asked in time; the lock stayed taken for %v at last", n, runs, judged, least)
		checkShare(t, judged, n)
		rig.Eventually(t, soon, "nothing is left", free(admin, name))
	})
}

// tickLeast is the minimum time of a lock on a machine that is never too slow. The first ticks are
// longer.
const tickLeast = 20 * time.Millisecond

// nextLeast returns the minimum time for the next tick: twice as much after one for which the
// machine was too slow, and otherwise a little less. So few ticks are late on a busy machine.
func nextLeast(least time.Duration, inTime bool) time.Duration {
	if !inTime {
		return min(2*least, time.Second)
	}
	return max((least - least/50).Round(time.Millisecond), tickLeast)
}

// attemptTick is one tick: all schedulers try, each a little later than the previous one, and the
// first of them is another one in each tick.
func attemptTick(t *testing.T, locks []anyLock, tick int, least time.Duration) tickAttempts {
	all := make(tickAttempts, len(locks))
	var schedulers sync.WaitGroup
	for i, lock := range locks {
		schedulers.Go(func() {
			rest(time.Duration((tick+i)%len(locks)) * least / 8)
			all[i] = attemptRun(t, lock, tickAttempt{tick: tick, scheduler: i, least: least})
		})
	}
	schedulers.Wait()
	return all
}

// attemptRun is what one scheduler does in a tick.
func attemptRun(t *testing.T, lock anyLock, a tickAttempt) tickAttempt {
	a.before = time.Now()
	hold, err := lock.TryLock(t.Context(), latchkey.AtLeast(a.least))
	a.after, a.err = time.Now(), err
	if err == nil {
		if err := hold.Unlock(t.Context()); err != nil {
			assert.ErrorIs(t, err, latchkey.ErrLost, "the lease is as short")
		}
	}
	return a
}
