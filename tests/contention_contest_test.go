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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// turn is for how long a client may pass a lock on to itself while others wait.
const turn = 10 * time.Millisecond

// acquire acquires what a contest is about.
type acquire func(ctx context.Context) (taken, error)

// taken is what was acquired.
type taken struct {
	release func(ctx context.Context) error
	token   int64         // 0 if it has none
	valid   time.Duration // for how long it is certain, 0 if nobody says
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
		if err := s.Acquire(ctx, 1); err != nil {
			return taken{}, err
		}
		return taken{release: func(ctx context.Context) error { return s.Release(ctx, 1) }}, nil
	}
}

// party is a client in a contest: so many of its goroutines acquire, hold and release
// again and again.
type party struct {
	name       string
	goroutines int
	acquire    acquire
	work       func(c *contest, worker int) error // what a process does that takes part by itself, instead of acquire
	weight     int32                              // what one of them takes of the whole; 0 is all of it
	polls      bool                               // it comes in when it happens to find what it wants free
}

// contest has the goroutines of several clients want the same at the same time, all in this
// process, which can therefore tell without a command whether too many are inside.
type contest struct {
	parties  []party
	hold     time.Duration // for which each keeps what it has acquired
	door     string        // a file that is there while somebody is inside, if other processes take part
	lasts    time.Duration // goes on for so long, and
	passes   int64         // until all together have passed so often, and
	both     bool          // until the first party has passed and another has, if that is not too long
	disturb  func(n int)   // does something to the server for the n-th time, from 0,
	every    time.Duration // after each such time, or never
	dump     func() any    // what to print of the server when a waiter is stranded
	punctual time.Duration // holds may be lost if the machine is ever later than that; 0: none may

	tally    *rig.Tally // of the goroutines, those of the first party first
	waits    []waiting  // of the same
	start    time.Time
	took     time.Duration
	total    atomic.Int64
	finished atomic.Bool // it is over, whatever else is asked for
	inside   atomic.Int32
	overlaps atomic.Int64
	token    atomic.Int64
	backward atomic.Int64         // tokens that were not larger than the one before
	lost     atomic.Int64         // holds that were not renewed in time
	late     func() time.Duration // how late the machine was
}

// run holds the contest. It fails the test for overlaps, tokens that do not grow, errors
// and stranded waiters.
func (c *contest) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.watch(t, cancel, c.begin(ctx))
	c.check(t)
	assert.Positive(t, c.total.Load(), "nobody passed")
	assert.True(t, !c.both || c.bothPassed(), "somebody never passed: %v", c.byParty())
}

// check says what was wrong when all have ended.
func (c *contest) check(t testing.TB) {
	t.Helper()
	assert.Zero(t, c.overlaps.Load(), "too many were inside at once")
	assert.Zero(t, c.backward.Load(), "a token was not larger than the one before")
	if c.punctual == 0 {
		return
	}
	if late := c.late(); c.lost.Load() > 0 {
		t.Logf("%d holds were lost, on a machine that was %v late at most", c.lost.Load(), late.Round(time.Millisecond))
		assert.GreaterOrEqual(t, late, c.punctual, "it had time to renew them")
	}
}

// begin starts all goroutines. The channel delivers their errors when all have ended.
func (c *contest) begin(ctx context.Context) <-chan error {
	var each []party // once for each of its goroutines
	for _, p := range c.parties {
		each = append(each, slices.Repeat([]party{p}, p.goroutines)...)
	}
	n := len(each)
	c.tally, c.waits, c.start = rig.NewTally(n), make([]waiting, n), time.Now()
	if c.punctual > 0 {
		c.late = rig.WatchLateness()
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

func (c *contest) work(ctx context.Context, worker int, p party) error {
	if p.work != nil {
		return p.work(c, worker)
	}
	for !c.over() {
		start := time.Now()
		c.waits[worker].begin(start, c.total.Load())
		got, err := p.acquire(ctx)
		c.waits[worker].end()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		c.count(worker, time.Since(start))
		c.enter(p, got.token)
		switch err := got.release(ctx); {
		case c.punctual > 0 && errors.Is(err, latchkey.ErrLost):
			c.lost.Add(1)
		case err != nil:
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (c *contest) over() bool {
	lasted := time.Since(c.start)
	return c.finished.Load() || lasted >= c.lasts && c.total.Load() >= c.passes && (!c.both || c.bothPassed() || lasted >= c.lasts+3*soon)
}

// bothPassed reports whether the first party has passed, and another has.
func (c *contest) bothPassed() bool {
	first := int64(c.byParty()[0])
	return 0 < first && first < c.total.Load()
}

// count leaves out who comes in only because the others have stopped.
func (c *contest) count(worker int, wait time.Duration) {
	if c.over() {
		c.tally.Waited(worker, wait)
		return
	}
	c.tally.Add(worker, wait)
	c.total.Add(1)
}

func (c *contest) enter(p party, token int64) {
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

// closeDoor tells other processes that somebody is inside, and reports whether nobody was.
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

// byParty is how often each party has passed.
func (c *contest) byParty() (sums []int) {
	counts := c.tally.Counts()
	for _, p := range c.parties {
		sum := 0
		for _, n := range counts[:p.goroutines] {
			sum += n
		}
		sums, counts = append(sums, sum), counts[p.goroutines:]
	}
	return sums
}

// share is what a party got of all passes, and what it would have got if all goroutines had
// passed equally often.
func (c *contest) share(party int) (got, fair float64) {
	return float64(c.byParty()[party]) / float64(max(c.total.Load(), 1)),
		float64(c.parties[party].goroutines) / float64(len(c.waits))
}

func (c *contest) String() string {
	return fmt.Sprintf("%v; %.0f/s; Jain %.3f over clients %v, %.3f over goroutines", c.tally,
		float64(c.total.Load())/c.took.Seconds(), rig.Jain(c.byParty()), c.byParty(), rig.Jain(c.tally.Counts()))
}

// targetFairness holds it against what is to be promised of every lock: nobody starves.
func (c *contest) targetFairness(t testing.TB, longest time.Duration) {
	t.Helper()
	if c.took < 20*turn*time.Duration(len(c.parties)) {
		return // too few turns to tell
	}
	clients, goroutines := rig.Jain(c.byParty()), rig.Jain(c.tally.Counts())
	rig.Target(t, clients >= 0.99, "Jain over clients %.3f, want 0.99", clients)
	rig.Target(t, goroutines >= 0.99, "Jain over goroutines %.3f, want 0.99", goroutines)
	rig.Target(t, c.tally.Longest() <= longest, "the longest wait %v, want %v at most", c.tally.Longest(), longest)
}

// polling reports whether a goroutine is of a party that polls.
func (c *contest) polling(worker int) bool {
	for _, p := range c.parties {
		if worker < p.goroutines {
			return p.polls
		}
		worker -= p.goroutines
	}
	return false
}

// waiting is the wait of one goroutine that is under way.
type waiting struct {
	mu     sync.Mutex
	since  time.Time // zero while it does not wait
	passes int64     // of all when it began
}

func (w *waiting) begin(now time.Time, passes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.passes = now, passes
}

func (w *waiting) end() { w.begin(time.Time{}, 0) }

// stranded reports whether others have passed again and again for so long a time that this
// one would have come in if it were in line, or were woken, or asked. It says so once.
func (w *waiting) stranded(passes int64, others int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() || time.Since(w.since) < strandedAfter || passes-w.passes < 20*int64(others) {
		return false
	}
	w.since = time.Time{}
	return true
}

const strandedAfter = 5 * time.Second

// watch disturbs the server and looks for stranded waiters until all have ended. A contest that
// stands still is called off.
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
				i, strandedAfter, c.byParty(), c.dump())
		}
	}
}
