package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// turn is how long a client may pass a lock among its own goroutines while others wait.
const turn = 10 * time.Millisecond

// acquire acquires what the contenders of a contest want.
type acquire func(ctx context.Context) (taken, error)

// taken is what was acquired.
type taken struct {
	release func(ctx context.Context) error
	token   int64         // 0 if it has none
	valid   time.Duration // how long the hold is valid, 0 if unknown
}

func locking(lock latchkey.Locker) acquire {
	return func(ctx context.Context) (taken, error) {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return taken{}, err
		}
		return taken{hold.Unlock, hold.Token(), hold.ValidFor()}, nil
	}
}

// taking takes one permit.
func taking(s *latchkey.Semaphore) acquire {
	return func(ctx context.Context) (taken, error) {
		if err := s.Acquire(ctx); err != nil {
			return taken{}, err
		}
		return taken{release: func(ctx context.Context) error { return s.Release(ctx) }}, nil
	}
}

// contender is a client in a contest whose goroutines acquire, hold and release again and again.
type contender struct {
	name       string
	goroutines int
	acquire    acquire
	work       func(c *contest, worker int) error // replaces acquire if the contender is another process
	weight     int32                              // what one acquisition takes of the whole; 0 means all of it
	polls      bool                               // it enters only if it happens to find what it wants free
}

// contest lets goroutines of several clients contend for the same thing. All run in this process,
// which can therefore detect without a command that too many are inside.
type contest struct {
	contenders []contender
	hold       time.Duration  // how long each keeps what it acquired
	door       string         // a file that exists while somebody is inside, if other processes take part
	lasts      time.Duration  // the contest goes on for this long, and
	passes     int64          // until all contenders together have passed this often, and
	both       bool           // until the first contender and another one have passed, up to a time limit
	disturb    func(n int)    // disturbs the server for the n-th time, from 0,
	every      time.Duration  // at this interval, or never
	dump       func() any     // what to print of the server when a waiter is stranded
	punctual   time.Duration  // holds may be lost if the machine is ever later than this; 0: none may
	answers    rueidis.Client // to a server whose answers may be late too, or nil

	tally    *rig.Tally // of the goroutines, those of the first contender first
	waits    []waiting  // in the same order
	start    time.Time
	took     time.Duration
	total    atomic.Int64
	finished atomic.Bool // the contest is over, regardless of the conditions above
	inside   atomic.Int32
	overlaps atomic.Int64
	token    atomic.Int64
	backward atomic.Int64 // tokens that were not larger than the one before
	lost     atomic.Int64 // holds that were not renewed in time, and acquisitions and releases that were not answered in time
	lastLoss atomic.Pointer[error]
	late     func() time.Duration // how late the machine was
}

// punctualFor returns the lateness up to which no hold may be lost that a release of another client
// has granted for that lease. When it is to be renewed, at least a quarter of the lease is left. In
// that time the timer may be late, and after it the answer. Either alone can be as late as the
// worst sample of the lateness.
func punctualFor(lease time.Duration) time.Duration { return lease / 8 }

// run holds the contest. It fails the test for overlaps, tokens that do not grow, errors and
// stranded waiters.
func (c *contest) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.watch(t, cancel, c.begin(ctx))
	c.check(t)
	assert.Positive(t, c.total.Load(), "nobody passed")
	assert.True(t, !c.both || c.bothPassed(), "somebody never passed: %v", c.byContender())
}

// check reports what went wrong after all have ended.
func (c *contest) check(t testing.TB) {
	t.Helper()
	assert.Zero(t, c.overlaps.Load(), "too many were inside at once")
	assert.Zero(t, c.backward.Load(), "a token was not larger than the one before")
	if c.punctual == 0 {
		return
	}
	if late := c.late(); c.lost.Load() > 0 {
		t.Logf("%d holds were lost, on a machine that was %v late at most; the last: %v", c.lost.Load(),
			late.Round(time.Millisecond), *c.lastLoss.Load())
		assert.GreaterOrEqual(t, late, c.punctual, "it had time to renew them")
	}
}

// begin starts all goroutines. The channel delivers their errors when all have ended.
func (c *contest) begin(ctx context.Context) <-chan error {
	var each []contender // once for each of its goroutines
	for _, p := range c.contenders {
		each = append(each, slices.Repeat([]contender{p}, p.goroutines)...)
	}
	n := len(each)
	c.tally, c.waits, c.start = rig.NewTally(n), make([]waiting, n), time.Now()
	if c.punctual > 0 {
		c.late = rig.WatchLateness(c.answers)
	}
	failures, ended := make([]error, n), make(chan error, 1)
	var all sync.WaitGroup
	for worker, p := range each {
		all.Go(func() { failures[worker] = c.work(ctx, worker, p) })
	}
	go func() {
		all.Wait()
		ended <- errors.Join(failures...)
	}()
	return ended
}

func (c *contest) work(ctx context.Context, worker int, p contender) error {
	if p.work != nil {
		return p.work(c, worker)
	}
	for !c.over() {
		start := time.Now()
		c.waits[worker].begin(start, c.total.Load())
		got, err := p.acquire(ctx)
		c.waits[worker].end()
		switch {
		case c.punctual > 0 && errors.Is(err, latchkey.ErrUnavailable):
			c.loses(err)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", p.name, err)
		}
		c.count(worker, time.Since(start))
		c.enter(p, got.token)
		switch err := got.release(ctx); {
		case c.punctual > 0 && (errors.Is(err, latchkey.ErrLost) || errors.Is(err, latchkey.ErrUnavailable)):
			c.loses(err)
		case err != nil:
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// loses counts a hold that was lost, or a call that was not answered in time.
func (c *contest) loses(err error) {
	c.lastLoss.Store(&err)
	c.lost.Add(1)
}

func (c *contest) over() bool {
	lasted := time.Since(c.start)
	return c.finished.Load() || lasted >= c.lasts && c.total.Load() >= c.passes && (!c.both || c.bothPassed() || lasted >= c.lasts+3*soon)
}

// bothPassed reports whether the first contender has passed and another has too.
func (c *contest) bothPassed() bool {
	first := int64(c.byContender()[0])
	return 0 < first && first < c.total.Load()
}

// count does not count passes that succeed only because the others have stopped.
func (c *contest) count(worker int, wait time.Duration) {
	if c.over() {
		c.tally.Waited(worker, wait)
		return
	}
	c.tally.Add(worker, wait)
	c.total.Add(1)
}

func (c *contest) enter(p contender, token int64) {
	weight := cmp.Or(p.weight, whole)
	if c.inside.Add(weight) > whole || !c.closeDoor() {
		c.overlaps.Add(1)
	}
	if token != 0 && c.token.Swap(token) >= token {
		c.backward.Add(1)
	}
	if c.hold > 0 {
		rest(c.hold)
	}
	if c.door != "" {
		_ = os.Remove(c.door)
	}
	c.inside.Add(-weight)
}

// closeDoor shows other processes that somebody is inside. It reports whether nobody was inside
// before.
func (c *contest) closeDoor() bool {
	if c.door == "" {
		return true
	}
	file, err := os.OpenFile(c.door, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}

// sharesFor is how long shares are measured: LATCHKEY_TEST_SHARES=20s makes them exact.
func sharesFor(t *testing.T, full time.Duration) time.Duration {
	t.Helper()
	return rig.Campaign(t, "LATCHKEY_TEST_SHARES", full)
}

// byContender returns how often each contender has passed.
func (c *contest) byContender() (sums []int) {
	counts := c.tally.Counts()
	for _, p := range c.contenders {
		sum := 0
		for _, n := range counts[:p.goroutines] {
			sum += n
		}
		sums, counts = append(sums, sum), counts[p.goroutines:]
	}
	return sums
}

// share returns the share that a contender has of all passes, and its share if all goroutines had
// passed equally often.
func (c *contest) share(contender int) (got, fair float64) {
	return float64(c.byContender()[contender]) / float64(max(c.total.Load(), 1)),
		float64(c.contenders[contender].goroutines) / float64(len(c.waits))
}

func (c *contest) String() string {
	return fmt.Sprintf("%v; %.0f/s; Jain %.3f over clients %v, %.3f over goroutines", c.tally,
		float64(c.total.Load())/c.took.Seconds(), rig.Jain(c.byContender()), c.byContender(), rig.Jain(c.tally.Counts()))
}

// targetFairness compares the contest with the target for every lock: nobody starves.
func (c *contest) targetFairness(t testing.TB, longest time.Duration) {
	t.Helper()
	if c.took < 20*turn*time.Duration(len(c.contenders)) {
		return // too few turns to tell
	}
	clients, goroutines := rig.Jain(c.byContender()), rig.Jain(c.tally.Counts())
	rig.Target(t, clients >= 0.99, "Jain over clients %.3f, want 0.99", clients)
	rig.Target(t, goroutines >= 0.99, "Jain over goroutines %.3f, want 0.99", goroutines)
	rig.Target(t, c.tally.Longest() <= longest, "the longest wait %v, want %v at most", c.tally.Longest(), longest)
}

// polling reports whether a goroutine belongs to a contender that polls.
func (c *contest) polling(worker int) bool {
	for _, p := range c.contenders {
		if worker < p.goroutines {
			return p.polls
		}
		worker -= p.goroutines
	}
	return false
}

// waiting is the current wait of one goroutine.
type waiting struct {
	mu     sync.Mutex
	since  time.Time // zero while it does not wait
	passes int64     // of all goroutines when the wait began
}

func (w *waiting) begin(now time.Time, passes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.passes = now, passes
}

func (w *waiting) end() { w.begin(time.Time{}, 0) }

// stranded reports whether others have passed so often and for so long that this waiter would have
// entered if it were queued, woken or polling. It reports this once.
func (w *waiting) stranded(passes int64, others int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() || time.Since(w.since) < strandedAfter || passes-w.passes < 20*int64(others) {
		return false
	}
	w.since = time.Time{}
	return true
}

const strandedAfter = soon / 2

// watch disturbs the server and looks for stranded waiters until all have ended. It calls off a
// contest that makes no progress.
func (c *contest) watch(t testing.TB, callOff func(), ended <-chan error) {
	t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	disturb := c.disturbances(t)
	var seen progress
	moved := time.Now()
	for i := 0; ; {
		select {
		case err := <-ended:
			c.took = time.Since(c.start)
			require.NoError(t, err)
			return
		case <-disturb:
			c.disturb(i)
			i++
		case <-look.C:
			if now := (progress{c.total.Load(), c.over()}); now != seen {
				seen, moved = now, time.Now()
			}
			if time.Since(moved) > 2*soon {
				t.Errorf("nothing has moved for %v; the server has %v", 2*soon, c.dump())
				callOff()
				moved = time.Now()
			}
			c.reportStranded(t)
		}
	}
}

// progress is what changes while a contest goes on.
type progress struct {
	passes int64
	over   bool
}

func (c *contest) disturbances(t testing.TB) <-chan time.Time {
	t.Helper()
	if c.every == 0 {
		return nil
	}
	ticker := time.NewTicker(c.every)
	t.Cleanup(ticker.Stop)
	return ticker.C
}

func (c *contest) reportStranded(t testing.TB) {
	t.Helper()
	passes := c.total.Load()
	for i := range c.waits {
		if !c.polling(i) && c.waits[i].stranded(passes, len(c.waits)) {
			t.Errorf("goroutine %d is stranded: it has waited for more than %v; %v; the server has %v",
				i, strandedAfter, c.byContender(), c.dump())
		}
	}
}
