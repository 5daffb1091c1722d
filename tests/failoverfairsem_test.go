package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// fairPools are fair semaphores during failovers. Their waiters count as alive for longer than a failover takes, so
// that none of them is passed over, and soon listen to the next master.
type fairPools struct {
	c    *campaign
	a, b *latchkey.Client
	gate turnstile
	name string
}

func newFairPools(c *campaign) *fairPools {
	options := c.options
	options.StaleWaiterTimeout, options.PollCeiling = 20*time.Second, 250*time.Millisecond
	p := &fairPools{c: c, a: c.connect(options), b: c.connect(options), gate: turnstile{room: 3}, name: c.prefix + "pool"}
	rig.Eventually(c.t, soon, "there are permits", func() error {
		return p.a.NewFairSemaphore(p.name).SetPermits(c.t.Context(), p.gate.room)
	})
	return p
}

// churn acquires and releases without end.
func (p *fairPools) churn(ctx context.Context, i int) {
	s := []*latchkey.Client{p.a, p.b}[i%2].NewFairSemaphore(p.name)
	for ctx.Err() == nil {
		permits, err := s.AcquireN(ctx, 1+rand.N(2))
		if err != nil {
			rest(10 * time.Millisecond)
			continue
		}
		p.gate.stay(permits, time.After(rand.N(3*time.Millisecond)))
		_ = permitsGot{permits: permits}.giveBack() // they may be lost, and say so
	}
}

// queue has waiters stand behind a holder of all permits through a failover. What it returns has the holder
// leave, and checks that it knows what the server says and that all waiters are served, in their order if none
// of them had to come anew.
func (p *fairPools) queue(name string) (end func()) {
	ctx, s := within(p.c.t, time.Minute), p.a.NewFairSemaphore(name)
	require.NoError(p.c.t, s.SetPermits(ctx, 2))
	held := p.insist(ctx, s, 2)
	require.NoError(p.c.t, held.err)
	served, anew, late := make(chan int, 3), false, rig.WatchLateness()
	for i, n := range []int{1, 2, 1} {
		go func() {
			got := p.insist(ctx, []*latchkey.Client{p.b, p.a}[i%2].NewFairSemaphore(name), n)
			assert.NoError(p.c.t, got.err)
			served <- i
			_ = got.giveBack()
		}()
		rig.Eventually(p.c.t, soon, "it stands in the queue", func() error {
			all, err := s.Waiters(ctx)
			if err == nil && len(all) != i+1 {
				err = fmt.Errorf("%d wait", len(all))
			}
			return err
		})
	}
	before, err := s.Waiters(ctx)
	require.NoError(p.c.t, err)
	return func() {
		holders, err := s.Holders(ctx)
		require.NoError(p.c.t, err)
		after, err := s.Waiters(ctx)
		require.NoError(p.c.t, err)
		anew = len(after) != len(before)
		for i, w := range after {
			anew = anew || w.Owner != before[i].Owner
		}
		for _, permit := range held.permits {
			if permit.Err() == nil {
				assert.True(p.c.t, listed(holders, permit), "the holder does not know that its permit is lost")
			} else {
				assert.ErrorIs(p.c.t, permit.Err(), latchkey.ErrLost)
			}
			if err := permit.Release(ctx); err != nil {
				assert.ErrorIs(p.c.t, err, latchkey.ErrNotHeld)
			}
		}
		var order []int
		for range 3 {
			order = append(order, rig.Await(p.c.t, p.c.options.Lease+soon, "a waiter for permits", served))
		}
		if worst := late(); !anew && worst < leeway/3 { // else its clients may not listen again
			assert.Equal(p.c.t, []int{0, 1, 2}, order)
		}
		fairCounts(p.c.t, s, 2, 0)
	}
}

// insist acquires, however often the replicas are missing.
func (p *fairPools) insist(ctx context.Context, s *latchkey.FairSemaphore, n int) (got permitsGot) {
	got.err = p.c.again(ctx, func() (err error) { got.permits, err = s.AcquireN(ctx, n); return err })
	return got
}

func listed(holders []latchkey.PermitHolder, permit *latchkey.Permit) bool {
	for _, h := range holders {
		if h.ID == permit.ID() {
			return true
		}
	}
	return false
}

// turnstile sees how many permits are held at once, and for how long there are more of them than there should be.
type turnstile struct {
	mu      sync.Mutex
	room    int
	inside  int
	since   time.Time // there are too many, or the zero time
	times   int
	longest time.Duration
}

// stay is inside until it is time to leave, or for as long as none of the permits is lost.
func (t *turnstile) stay(permits []*latchkey.Permit, leave <-chan time.Time) {
	t.change(len(permits))
	defer t.change(-len(permits))
	select {
	case <-leave:
	case <-permits[0].Lost():
	case <-permits[len(permits)-1].Lost():
	}
}

func (t *turnstile) change(by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside += by
	switch over := t.inside > t.room; {
	case over && t.since.IsZero():
		t.since, t.times = time.Now(), t.times+1
	case !over && !t.since.IsZero():
		t.longest, t.since = max(t.longest, time.Since(t.since)), time.Time{}
	}
}

// poolOptions have waiters count as alive for longer than a busy machine keeps them from saying so.
var poolOptions = latchkey.Options{Lease: 6 * time.Second, StaleWaiterTimeout: 4 * time.Second, PollCeiling: faultPoll}

// poolFailover is a fair semaphore on a master whose replica falls behind and takes its place.
type poolFailover struct {
	*failover
	pool *latchkey.FairSemaphore // of a client that does nothing else
}

func newPoolFailover(t *testing.T, permits int) *poolFailover {
	t.Helper()
	f := &poolFailover{failover: newLockFailover(t, fencedKind)}
	f.pool = f.another()
	require.NoError(t, f.pool.SetPermits(t.Context(), permits))
	return f
}

// another is the same semaphore of another client.
func (f *poolFailover) another() *latchkey.FairSemaphore {
	f.t.Helper()
	return connectVia(f.t, f.Master, f.tap().Addr(), poolOptions).NewFairSemaphore(f.name)
}

// stand lets another client wait.
func (f *poolFailover) stand(ctx context.Context, n int) <-chan permitsGot {
	f.t.Helper()
	return stand(ctx, f.t, f.master, f.another(), n)
}

// serves has each of the waiters be served when those before it have released what they had.
func serves(t *testing.T, waiting ...<-chan permitsGot) {
	t.Helper()
	for i, w := range waiting {
		got := rig.Await(t, 2*soon, fmt.Sprintf("number %d", i), w)
		require.NoError(t, got.err)
		got.release(t)
	}
}

// servesAll is serves in any order: on a busy machine the first may count as dead when the second comes.
func servesAll(t *testing.T, waiting ...<-chan permitsGot) {
	t.Helper()
	served := make(chan permitsGot, len(waiting))
	for _, w := range waiting {
		go func() { served <- <-w }()
	}
	for range waiting {
		serves(t, served)
	}
}

// wellAt awaits that the next master has all permits available, and no queue.
func (f *poolFailover) wellAt(permits int) {
	f.t.Helper()
	fairCounts(f.t, f.pool, permits, 0)
	nothingWaits(f.t, f.next, f.name)
}

// The replica that takes over knows the permits and nobody who waits: they come back with their tickets, and are
// served in their order.
func TestFailover_that_loses_the_queue_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 2)
	held, err := f.another().AcquireN(t.Context(), 2, latchkey.Lease(time.Minute))
	require.NoError(t, err)
	f.fallBehind()
	ctx := within(t, time.Minute)
	var waiting []<-chan permitsGot
	for _, n := range []int{1, 2, 1, 1, 2} {
		waiting = append(waiting, f.stand(ctx, n))
	}
	require.Zero(t, f.next.Int("EXISTS", permitQueueOf(f.name)))
	f.over()
	grantable(t, f.next, f.name, 5)
	permitsGot{permits: held}.release(t)
	serves(t, waiting...)
	f.wellAt(2)
}

// The replica has a queue from before. In front of those who still wait stand one whose process was killed, one
// who has given up, and one who has been served since. Nobody of them keeps the permit from the others, of whom
// the server does not know the last.
func TestFailover_that_brings_an_old_queue_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 1)
	held, err := f.another().Acquire(t.Context())
	require.NoError(t, err)
	killed := sitter.Start(t, f.name, f.Master.Ticket(), "1", "1")
	grantable(t, f.master, f.name, 1)
	impatient, leave := context.WithCancel(t.Context())
	ctx := within(t, time.Minute)
	left, early, behind := f.stand(impatient, 1), f.stand(ctx, 1), f.stand(ctx, 1)
	grantable(t, f.master, f.name, 4)
	f.fallBehind()
	killed.Kill()
	leave()
	require.ErrorIs(t, rig.Await(t, soon, "the end of a wait", left).err, context.Canceled)
	require.NoError(t, held.Release(t.Context()))
	served := rig.Await(t, soon, "who is served before the failover", early)
	require.NoError(t, served.err)
	last := f.stand(ctx, 1)
	require.Equal(t, int64(4), f.next.Int("ZCARD", permitQueueOf(f.name)))
	f.over()
	start := time.Now()
	permit := served.permits[0]
	select {
	case <-permit.Lost():
		t.Logf("told %v after the failover", time.Since(start).Round(time.Millisecond))
		require.ErrorIs(t, permit.Release(t.Context()), latchkey.ErrLost)
	case <-time.After(poolOptions.Lease): // the next master has granted it once more
		holders, err := f.pool.Holders(t.Context())
		require.NoError(t, err)
		require.True(t, listed(holders, permit), "the holder does not know that its permit is lost")
		require.NoError(t, permit.Release(t.Context()))
	}
	servesAll(t, behind, last)
	t.Logf("all are served %v after the failover", time.Since(start).Round(time.Millisecond))
	f.wellAt(1)
}

// The replica does not know who was given permits last: others have them, and it is told so within a lease. What
// it releases then adds no permits.
func TestFailover_that_loses_permits_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 3)
	ctx := within(t, time.Minute)
	known, err := f.another().Acquire(ctx)
	require.NoError(t, err)
	f.fallBehind()
	lost, err := f.another().AcquireN(ctx, 2)
	require.NoError(t, err)
	waiting := f.stand(ctx, 2)
	f.over()
	start := time.Now()
	next := rig.Await(t, soon, "who waited for them", waiting)
	require.NoError(t, next.err)
	behind := stand(ctx, t, f.next, f.pool, 1)
	for _, permit := range lost {
		rig.Await(t, poolOptions.Lease+leeway, "the old holder is told", permit.Lost())
	}
	t.Logf("told %v after the failover", time.Since(start).Round(time.Millisecond))
	require.ErrorIs(t, permitsGot{permits: lost}.giveBack(), latchkey.ErrLost)
	fairCounts(t, f.pool, 0, 3)
	require.Empty(t, behind, "there are three permits")
	require.NoError(t, known.Err())
	next.release(t)
	serves(t, behind)
	require.NoError(t, known.Release(ctx))
	f.wellAt(3)
}

// A permit is granted on the old master, and neither its client nor the replica hears of that: the waiter stands
// in the queue there, and is granted it once.
func TestFailover_that_loses_a_grant_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 1)
	ctx, tap := within(t, time.Minute), f.tap()
	held, err := f.another().Acquire(ctx)
	require.NoError(t, err)
	deaf := stand(ctx, t, f.master, connectVia(t, f.Master, tap.Addr(), poolOptions).NewFairSemaphore(f.name), 1)
	behind := f.stand(ctx, 1)
	grantable(t, f.master, f.name, 2)
	f.fallBehind()
	tap.DropMessages(true)
	stop := tap.LoseAll(rig.Any, rig.CutRequest)
	require.NoError(t, held.Release(ctx))
	permitQueueLength(t, f.master, f.name, 1)
	f.over()
	tap.DropMessages(false)
	stop()
	servesAll(t, deaf, behind)
	f.wellAt(1)
}

// While the slot of a fair semaphore moves, its permits stay, and its waiters wait. They are served in their
// order when it has moved, and nobody hangs, also if nobody could be refreshed for longer than they count as alive.
func TestMigration_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	const lease, stale = 10 * time.Second, 4 * time.Second
	cluster := rig.NewCluster(t)
	for half, which := range halves() {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			options := latchkey.Options{Lease: lease, StaleWaiterTimeout: stale, PollCeiling: time.Second}
			open := func(name string) *latchkey.FairSemaphore {
				return connectCluster(t, cluster, options).NewFairSemaphore(name)
			}
			ctx, admin := within(t, 2*time.Minute), rig.NewAdmin(t, cluster.Server())
			s := open("{" + rig.Name(t) + "}:pool")
			require.NoError(t, s.SetPermits(ctx, 2))
			held, err := s.AcquireN(ctx, 2)
			require.NoError(t, err)
			var waiting []<-chan permitsGot
			for _, n := range []int{1, 2, 1} {
				waiting = append(waiting, stand(ctx, t, admin, open(s.Name()), n))
			}
			moveKeys, finish := cluster.BeginMove(s.Name())
			moveKeys(which)
			rig.Throughout(t, 2*stale, "the permits are held", func() error {
				return errors.Join(held[0].Err(), held[1].Err())
			})
			moveKeys(rig.EveryKey)
			finish()
			rig.Eventually(t, 2*soon, "all have their places", func() error {
				all, err := s.Waiters(ctx)
				alive := 0
				for _, w := range all {
					if w.Alive > 0 {
						alive++
					}
				}
				if err == nil && alive != len(waiting) {
					err = fmt.Errorf("%+v", all)
				}
				return err
			})
			cluster.AwaitListening(len(waiting), s.Name())
			permitsGot{permits: held}.release(t)
			serves(t, waiting...)
			fairCounts(t, s, 2, 0)
			nothingWaits(t, admin, s.Name())
		})
	}
}
