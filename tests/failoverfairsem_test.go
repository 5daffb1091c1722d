package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// failoverPools are fair semaphores during failovers. Their waiters count as alive for longer than
// a failover takes, so that none is passed over, and they soon listen to the next master.
type failoverPools struct {
	c    *failoverSeries
	a, b *latchkey.Client
	gate permitExcess
	name string
}

func newFailoverPools(c *failoverSeries) *failoverPools {
	options := c.options
	options.Tuning.StaleWaiterTimeout, options.Tuning.PollCeiling = 20*time.Second, 250*time.Millisecond
	p := &failoverPools{c: c, a: c.connect(options), b: c.connect(options), gate: permitExcess{room: 3}, name: c.prefix + "pool"}
	rig.Eventually(c.t, soon, "there are permits", func() error {
		return p.a.NewFairSemaphore(p.name).SetPermits(c.t.Context(), p.gate.room)
	})
	return p
}

// churn acquires and releases without end.
func (p *failoverPools) churn(ctx context.Context, i int) {
	s := []*latchkey.Client{p.a, p.b}[i%2].NewFairSemaphore(p.name)
	for ctx.Err() == nil {
		permits, err := s.AcquireN(ctx, 1+rand.N(2))
		if err != nil {
			rest(10 * time.Millisecond)
			continue
		}
		p.gate.stay(permits, time.After(rand.N(3*time.Millisecond)))
		_ = permitsGot{permits: permits}.giveBack() // lost permits return an error
	}
}

// queue lets waiters queue behind a holder of all permits through a failover. The function that it
// returns makes the holder leave when the clients of the waiters listen to the new master, because
// the server passes over those that do not. It checks that the holder and the server agree and that
// all waiters are served, in order unless one of them had to join the queue again, or the machine
// was busy.
func (p *failoverPools) queue(name string) (end func()) {
	ctx, s := within(p.c.t, 3*time.Minute), p.a.NewFairSemaphore(name)
	require.NoError(p.c.t, s.SetPermits(ctx, 2))
	held, _ := p.insist(ctx, s, 2)
	require.NoError(p.c.t, held.err)
	served, anew, late := make(chan int, 3), false, rig.WatchLateness(nil)
	var retried atomic.Bool // a waiter had to join again: replicas did not confirm what it was granted
	waiters := rig.Goroutines(p.c.t)
	for i, n := range []int{1, 2, 1} {
		waiters.Go(func() {
			got, tries := p.insist(ctx, []*latchkey.Client{p.b, p.a}[i%2].NewFairSemaphore(name), n)
			if tries > 1 {
				retried.Store(true)
			}
			assert.NoError(p.c.t, got.err)
			served <- i
			_ = got.giveBack()
		})
		rig.Eventually(p.c.t, soon, "it is in the queue", func() error {
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
		rig.Eventually(p.c.t, soon, "the clients of the waiters listen", func() error {
			if all, err := s.Waiters(ctx); err != nil || len(all) < len(before) { // those missing have permits
				return err
			}
			return p.c.top.listening(name, p.a, p.b)
		})
		rig.Eventually(p.c.t, p.c.options.Lease+soon, "the holder and the server agree", func() error {
			holders, err := s.Holders(ctx)
			for _, permit := range held.permits {
				if err == nil && permit.Err() == nil && !listed(holders, permit) {
					err = errors.New("the holder does not know that its permit is lost")
				}
			}
			return err
		})
		after, err := s.Waiters(ctx)
		require.NoError(p.c.t, err)
		anew = len(after) != len(before)
		for i, w := range after {
			anew = anew || w.Owner != before[i].Owner
		}
		for _, permit := range held.permits {
			if err := permit.Err(); err != nil {
				assert.ErrorIs(p.c.t, err, latchkey.ErrLost)
			}
			if err := permit.Release(ctx); err != nil {
				assert.ErrorIs(p.c.t, err, latchkey.ErrNotHeld)
			}
		}
		var order []int
		for range 3 {
			order = append(order, rig.Await(p.c.t, p.c.options.Lease+soon, "a waiter for permits", served))
		}
		if worst := late(); !anew && !retried.Load() && worst < 500*time.Millisecond {
			assert.Equal(p.c.t, []int{0, 1, 2}, order)
		}
		fairCounts(p.c.t, s, 2, 0)
	}
}

// insist acquires, and retries as long as replicas are missing.
func (p *failoverPools) insist(ctx context.Context, s *latchkey.PermitSemaphore, n int) (got permitsGot, tries int) {
	got.err = p.c.again(ctx, func() (err error) {
		tries++
		got.permits, err = s.AcquireN(ctx, n)
		return err
	})
	return got, tries
}

func listed(holders []latchkey.PermitHolder, permit *latchkey.Permit) bool {
	for _, h := range holders {
		if h.ID == permit.ID() {
			return true
		}
	}
	return false
}

// poolOptions let waiters count as alive for longer than a busy machine delays their refresh.
var poolOptions = latchkey.Options{Lease: 12 * time.Second, Tuning: latchkey.Tuning{StaleWaiterTimeout: 8 * time.Second, PollCeiling: faultPoll}}

// poolFailover is a fair semaphore on a master whose replica falls behind and takes its place.
type poolFailover struct {
	*failover
	pool *latchkey.PermitSemaphore // of a client that does nothing else
}

func newPoolFailover(t *testing.T, permits int) *poolFailover {
	t.Helper()
	f := &poolFailover{failover: newLockFailover(t, fencedKind)}
	f.pool = f.another()
	require.NoError(t, f.pool.SetPermits(t.Context(), permits))
	return f
}

// another returns the same semaphore of another client.
func (f *poolFailover) another() *latchkey.PermitSemaphore {
	f.t.Helper()
	return connectVia(f.t, f.Master, f.tap().Addr(), poolOptions).NewFairSemaphore(f.name)
}

// queueForPermits makes another client wait.
func (f *poolFailover) queueForPermits(ctx context.Context, n int) <-chan permitsGot {
	f.t.Helper()
	return queueForPermits(ctx, f.t, f.master, f.another(), n)
}

// serves checks that each waiter is served after those before it have released their permits.
func serves(t *testing.T, waiting ...<-chan permitsGot) {
	t.Helper()
	for i, w := range waiting {
		got := rig.Await(t, 2*soon, fmt.Sprintf("number %d", i), w)
		require.NoError(t, got.err)
		got.release(t)
	}
}

// servesAll is serves in any order: on a busy machine the first waiter may count as dead when the
// second is served.
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

// awaitIdle waits until the next master has all permits available and no queue.
func (f *poolFailover) awaitIdle(permits int) {
	f.t.Helper()
	fairCounts(f.t, f.pool, permits, 0)
	nothingWaits(f.t, f.next, f.name)
}

// The replica that takes over knows the permits but no waiter. The waiters come back with their
// tickets and are served in order.
func TestFailover_that_loses_the_queue_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 2)
	held, err := f.another().AcquireN(t.Context(), 2, latchkey.Lease(time.Minute))
	require.NoError(t, err)
	f.fallBehind()
	ctx := within(t, time.Minute)
	var waiting []<-chan permitsGot
	for _, n := range []int{1, 2, 1, 1, 2} {
		waiting = append(waiting, f.queueForPermits(ctx, n))
	}
	require.Zero(t, f.next.Int("EXISTS", permitQueueOf(f.name)))
	f.over()
	grantable(t, f.next, f.name, 5)
	permitsGot{permits: held}.release(t)
	serves(t, waiting...)
	f.awaitIdle(2)
}

// The replica has an old queue. In front of the current waiters it has one whose process was
// killed, one that gave up, and one that was served since. None of them keeps the permit from the
// others, the last of which the server does not know.
func TestFailover_that_brings_an_old_queue_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 1)
	held, err := f.another().Acquire(t.Context())
	require.NoError(t, err)
	killed := fairPermitProcess.Start(t, f.name, f.Master.Ticket(), "1", "1", "3s")
	grantable(t, f.master, f.name, 1)
	impatient, leave := context.WithCancel(t.Context())
	ctx := within(t, time.Minute)
	left, early, behind := f.queueForPermits(impatient, 1), f.queueForPermits(ctx, 1), f.queueForPermits(ctx, 1)
	grantable(t, f.master, f.name, 4)
	f.fallBehind()
	killed.Kill()
	leave()
	require.ErrorIs(t, rig.Await(t, soon, "the end of a wait", left).err, context.Canceled)
	require.NoError(t, held.Release(t.Context()))
	served := rig.Await(t, soon, "who is served before the failover", early)
	require.NoError(t, served.err)
	last := f.queueForPermits(ctx, 1)
	require.Equal(t, int64(4), f.next.Int("ZCARD", permitQueueOf(f.name)))
	f.over()
	start := time.Now()
	permit := served.permits[0]
	select {
	case <-permit.Lost():
		t.Logf("told %v after the failover", time.Since(start).Round(time.Millisecond))
		require.ErrorIs(t, permit.Release(t.Context()), latchkey.ErrLost)
	case <-time.After(poolOptions.Lease): // the next master has granted it again
		holders, err := f.pool.Holders(t.Context())
		require.NoError(t, err)
		require.True(t, listed(holders, permit), "the holder does not know that its permit is lost")
		require.NoError(t, permit.Release(t.Context()))
	}
	servesAll(t, behind, last)
	t.Logf("all are served %v after the failover", time.Since(start).Round(time.Millisecond))
	f.awaitIdle(1)
}

// The replica does not know the last grants. It grants the permits to others, and the old holder
// learns of the loss within a lease. A release by the old holder then adds no permits.
func TestFailover_that_loses_permits_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 3)
	ctx := within(t, time.Minute)
	known, err := f.another().Acquire(ctx)
	require.NoError(t, err)
	f.fallBehind()
	lost, err := f.another().AcquireN(ctx, 2)
	require.NoError(t, err)
	waiting := f.queueForPermits(ctx, 2)
	f.over()
	start := time.Now()
	next := rig.Await(t, soon, "who waited for them", waiting)
	require.NoError(t, next.err)
	behind := queueForPermits(ctx, t, f.next, f.pool, 1)
	for _, permit := range lost {
		rig.Await(t, soon, "the old holder is told", permit.Lost())
	}
	t.Logf("told %v after the failover", time.Since(start).Round(time.Millisecond))
	require.ErrorIs(t, permitsGot{permits: lost}.giveBack(), latchkey.ErrLost)
	fairCounts(t, f.pool, 0, 3)
	require.Empty(t, behind, "there are three permits")
	require.NoError(t, known.Err())
	next.release(t)
	serves(t, behind)
	require.NoError(t, known.Release(ctx))
	f.awaitIdle(3)
}

// The old master grants a permit, and neither the client nor the replica learns of it. The waiter
// is still in the queue of the replica, and gets the permit once.
func TestFailover_that_loses_a_grant_of_a_fair_semaphore(t *testing.T) {
	t.Parallel()
	f := newPoolFailover(t, 1)
	ctx, tap := within(t, time.Minute), f.tap()
	held, err := f.another().Acquire(ctx)
	require.NoError(t, err)
	deaf := queueForPermits(ctx, t, f.master, connectVia(t, f.Master, tap.Addr(), poolOptions).NewFairSemaphore(f.name), 1)
	behind := f.queueForPermits(ctx, 1)
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
	f.awaitIdle(1)
}

// movingPool is a fair semaphore whose slot moves.
type movingPool struct {
	half    string
	s       *latchkey.PermitSemaphore
	held    []*latchkey.Permit
	waiting []<-chan permitsGot
	finish  func() // the move
}

// While the slot of a fair semaphore moves, its permits stay held, and its waiters wait. After the
// move they are served in order. Nobody hangs, even if no waiter could be refreshed for longer than
// it counts as alive.
func TestMigration_of_a_fair_semaphore(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	options := latchkey.Options{Lease: 10 * time.Second, Tuning: latchkey.Tuning{StaleWaiterTimeout: 4 * time.Second, PollCeiling: time.Second}}
	cluster, ctx := rig.NewCluster(t), within(t, 3*time.Minute)
	admin := rig.NewAdmin(t, cluster.Server())
	var all []*movingPool
	for half, which := range halves() {
		name := "{" + rig.Name(t) + "}:pool"
		open := func() *latchkey.PermitSemaphore { return connectCluster(t, cluster, options).NewFairSemaphore(name) }
		p := &movingPool{half: half, s: open()}
		require.NoError(t, p.s.SetPermits(ctx, 2))
		var err error
		p.held, err = p.s.AcquireN(ctx, 2)
		require.NoError(t, err)
		for _, n := range []int{1, 2, 1} {
			p.waiting = append(p.waiting, queueForPermits(ctx, t, admin, open(), n))
		}
		p.finish = moveHalf(cluster, name, which)
		all = append(all, p)
	}
	rig.Throughout(t, 2*options.Tuning.StaleWaiterTimeout, "the permits are held", func() error {
		for _, p := range all {
			if err := errors.Join(p.held[0].Err(), p.held[1].Err()); err != nil {
				return fmt.Errorf("%s: %w", p.half, err)
			}
		}
		return nil
	})
	for _, p := range all {
		p.finish()
	}
	for _, p := range all {
		rig.Eventually(t, 2*soon, p.half+": all have their places", func() error { return p.allWait(ctx) })
		cluster.AwaitListening(len(p.waiting), p.s.Name())
		permitsGot{permits: p.held}.release(t)
		serves(t, p.waiting...)
		fairCounts(t, p.s, 2, 0)
		nothingWaits(t, admin, p.s.Name())
	}
}

// allWait returns an error unless all waiters are in the queue and count as alive.
func (p *movingPool) allWait(ctx context.Context) error {
	all, err := p.s.Waiters(ctx)
	alive := 0
	for _, w := range all {
		if w.Alive > 0 {
			alive++
		}
	}
	if err == nil && alive != len(p.waiting) {
		err = fmt.Errorf("%+v; those held: %w", all, errors.Join(p.held[0].Err(), p.held[1].Err()))
	}
	for i, w := range p.waiting {
		if len(w) > 0 {
			err = errors.Join(err, fmt.Errorf("the waiter %d has ended", i))
		}
	}
	return err
}
