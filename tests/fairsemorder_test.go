package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The order in which a fair semaphore grants permits.

// Waiters get their permits in the order in which they came, whatever client they belong to and
// however many permits they want.
func TestFairSemaphoreIsInOrder(t *testing.T) {
	const waiters, total = 20, 4
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	clients := neverStaleClients(t, server, 3)
	s := newFairPermits(t, clients[0], total)
	all, err := s.AcquireN(t.Context(), total)
	require.NoError(t, err)
	served, takers := make(chan int, waiters), rig.Goroutines(t)
	for i := range waiters {
		waiting := queueForPermits(within(t, time.Minute), t, admin, clients[i%3].NewFairSemaphore(s.Name()), 1+i%total)
		takers.Go(func() {
			got := <-waiting
			assert.NoError(t, got.err)
			served <- i
			assert.NoError(t, got.giveBack())
		})
	}
	// There is always a free permit, and small requests wait behind large ones.
	start := time.Now()
	permitsGot{permits: all}.release(t)
	last := -1
	for range waiters {
		next := rig.Await(t, soon, "the next", served)
		// Several are granted at once and report it in any order.
		assert.InDelta(t, last+1, next, total, "after %d", last)
		last = max(last, next)
	}
	t.Logf("%d in %v", waiters, time.Since(start))
	nothingWaits(t, admin, s.Name())
	fairCounts(t, s, total, 0)
}

// A single permit shows the exact order.
func TestFairSemaphoreOfOneIsInOrder(t *testing.T) {
	const waiters = 15
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	clients := neverStaleClients(t, server, 3)
	s := newFairPermits(t, clients[0], 1)
	held, err := s.Acquire(t.Context())
	require.NoError(t, err)
	served, takers := make(chan int, waiters), rig.Goroutines(t)
	for i := range waiters {
		waiting := queueForPermits(within(t, time.Minute), t, admin, clients[i%3].NewFairSemaphore(s.Name()), 1)
		takers.Go(func() {
			got := <-waiting
			assert.NoError(t, got.err)
			served <- i
			assert.NoError(t, got.giveBack())
		})
	}
	require.NoError(t, held.Release(t.Context()))
	for want := range waiters {
		require.Equal(t, want, rig.Await(t, soon, "the next", served))
	}
	nothingWaits(t, admin, s.Name())
}

// A small request does not overtake a large one, and neither does TryAcquire.
func TestFairSemaphoreKeepsPermitsForTheFirst(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server, neverStale)
	s := newFairPermits(t, client, 3)
	held, err := s.AcquireN(ctx, 3)
	require.NoError(t, err)
	large := queueForPermits(within(t, time.Minute), t, admin, s, 3)
	small := queueForPermits(within(t, time.Minute), t, admin, connect(t, server).NewFairSemaphore(s.Name()), 1)
	for i, p := range held[:2] {
		require.NoError(t, p.Release(ctx))
		fairCounts(t, s, i+1, 2-i)
		_, err = s.TryAcquire(ctx)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "others wait")
	}
	require.Empty(t, small)
	require.NoError(t, held[2].Release(ctx))
	got := rig.Await(t, soon, "the large one", large)
	require.NoError(t, got.err)
	require.Empty(t, small)
	got.release(t)
	got = rig.Await(t, soon, "the small one", small)
	require.NoError(t, got.err)
	got.release(t)
}

// A waiter that gives up leaves the queue, and those behind it go on.
func TestFairSemaphoreWaiterGivesUp(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server, neverStale)
	s := newFairPermits(t, client, 2)
	held, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	impatient, cancel := context.WithCancel(ctx)
	large := queueForPermits(impatient, t, admin, s, 2)
	timed := queueForPermits(ctx, t, admin, s, 2, latchkey.Wait(2*time.Second)) // until it is seen in the queue
	small := queueForPermits(within(t, time.Minute), t, admin, connect(t, server).NewFairSemaphore(s.Name()), 1)
	require.NoError(t, held[0].Release(ctx))
	got := rig.Await(t, soon, "the time is over", timed)
	require.Error(t, got.err) // either kind: a busy machine may still owe it an answer
	cancel()
	got = rig.Await(t, soon, "it gives up", large)
	require.ErrorIs(t, got.err, context.Canceled)
	got = rig.Await(t, soon, "the one behind, before they count as dead", small)
	require.NoError(t, got.err)
	got.release(t)
	require.NoError(t, held[1].Release(ctx))
	nothingWaits(t, admin, s.Name())
	fairCounts(t, s, 2, 0)
}

// A request for more permits than there are blocks nobody. It gets its old place when there are
// enough permits in all.
func TestFairSemaphoreRequestForMoreThanThereAre(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	s := newFairPermits(t, connect(t, server), 2)
	held, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	large := connectVia(t, server, tap.Addr()).NewFairSemaphore(s.Name())
	most := make(chan permitsGot, 1)
	go func() {
		permits, err := large.AcquireN(within(t, time.Minute), 3)
		most <- permitsGot{permits, err}
	}()
	rig.Eventually(t, soon, "it comes first", func() error {
		if len(tap.Executed(rig.Both(rig.Named("EVALSHA"), rig.Mentions(s.Name())))) == 0 {
			return errors.New("it has not asked")
		}
		return nil
	})
	small := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	require.NoError(t, held[0].Release(ctx))
	got := rig.Await(t, soon, "the small one", small)
	require.NoError(t, got.err)
	two := queueForPermits(within(t, time.Minute), t, admin, s, 2)
	require.NoError(t, s.SetPermits(ctx, 3))
	permitQueueLength(t, admin, s.Name(), 2)
	require.NoError(t, held[1].Release(ctx))
	rest(100 * time.Millisecond)
	require.Empty(t, two, "it came after the large one, which waits for three")
	got.release(t)
	got = rig.Await(t, soon, "the large one", most)
	require.NoError(t, got.err)
	require.Len(t, got.permits, 3)
	require.Empty(t, two)
	got.release(t)
	got = rig.Await(t, soon, "the one behind", two)
	require.NoError(t, got.err)
	got.release(t)
	fairCounts(t, s, 3, 0)
}
