package tests

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// occupation acquires something, and returns how to release it.
type occupation func(ctx context.Context, c *latchkey.Client, name string) (release func(context.Context) error, err error)

func occupyLock(open func(c *latchkey.Client, name string) latchkey.Locker) occupation {
	return func(ctx context.Context, c *latchkey.Client, name string) (func(context.Context) error, error) {
		hold, err := open(c, name).Lock(ctx)
		return hold.Unlock, err
	}
}

// leasedPermits is a semaphore whose permits have leases.
type leasedPermits interface {
	TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	Acquire(ctx context.Context, options ...latchkey.PermitOption) (*latchkey.Permit, error)
}

func occupyPermit(open func(c *latchkey.Client, name string) leasedPermits) occupation {
	return func(ctx context.Context, c *latchkey.Client, name string) (func(context.Context) error, error) {
		if _, err := open(c, name).TrySetPermits(ctx, 1); err != nil {
			return nil, err
		}
		permit, err := open(c, name).Acquire(ctx)
		return permit.Release, err
	}
}

func occupySemaphore(ctx context.Context, c *latchkey.Client, name string) (func(context.Context) error, error) {
	s := c.NewSemaphore(name)
	if _, err := s.TrySetPermits(ctx, 1); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.Release(ctx) }, s.Acquire(ctx)
}

func occupyLead(ctx context.Context, c *latchkey.Client, name string) (func(context.Context) error, error) {
	lead, err := c.NewElection(name).Campaign(ctx, "")
	return lead.Resign, err
}

// occupations are all kinds of objects for which only one call can have what the others wait for.
var occupations = map[latchkey.Kind]occupation{
	latchkey.KindMutex:      occupyLock(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewMutex(name) }),
	latchkey.KindLock:       occupyLock(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewLock(name) }),
	latchkey.KindFenced:     occupyLock(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFencedLock(name) }),
	latchkey.KindSpin:       occupyLock(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewSpinLock(name, latchkey.Backoff{}) }),
	latchkey.KindFair:       occupyLock(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name) }),
	latchkey.KindWrite:      occupyLock(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Writer() }),
	latchkey.KindPermit:     occupyPermit(func(c *latchkey.Client, name string) leasedPermits { return c.NewPermitSemaphore(name) }),
	latchkey.KindFairPermit: occupyPermit(func(c *latchkey.Client, name string) leasedPermits { return c.NewFairSemaphore(name) }),
	latchkey.KindSemaphore:  occupySemaphore,
	latchkey.KindElection:   occupyLead,
}

// awaitWaiting waits until so many calls of a client wait for a kind.
func awaitWaiting(t *testing.T, client *latchkey.Client, kind latchkey.Kind, n int) {
	t.Helper()
	rig.Eventually(t, soon, "calls wait", func() error {
		if now := client.Waiting(); now[kind] != n {
			return fmt.Errorf("%v, not %d for %s", now, n, kind)
		}
		return nil
	})
}

// Each call that waits is counted under its kind, in its client, until it has what it waits for or
// gives up.
func TestWaitingCallsAreCounted(t *testing.T) {
	t.Parallel()
	for kind, occupy := range occupations {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			name, holder, client := rig.Name(t), connect(t, rig.Shared(), persistent), connect(t, rig.Shared(), persistent)
			release, err := occupy(t.Context(), holder, name)
			require.NoError(t, err)
			assert.Empty(t, holder.Waiting(), "a call that succeeds at once does not wait")

			leaving, leave := context.WithCancel(t.Context())
			defer leave()
			stay, gone := rig.Goroutines(t), rig.Goroutines(t)
			for range 2 {
				stay.Go(func() {
					release, err := occupy(t.Context(), client, name)
					if assert.NoError(t, err) {
						assert.NoError(t, release(t.Context()))
					}
				})
				gone.Go(func() {
					_, err := occupy(leaving, client, name)
					assert.ErrorIs(t, err, context.Canceled)
				})
			}
			awaitWaiting(t, client, kind, 4)
			leave()
			gone.Wait()
			awaitWaiting(t, client, kind, 2)
			assert.Empty(t, holder.Waiting())
			require.NoError(t, release(t.Context()))
			stay.Wait()
			assert.Empty(t, client.Waiting())
		})
	}
}

// The wait for one of several locks counts under its kind.
func TestWaitingForSeveralLocksIsCounted(t *testing.T) {
	t.Parallel()
	name, holder, client := rig.Name(t), connect(t, rig.Shared(), persistent), connect(t, rig.Shared(), persistent)
	hold := mustLock(t, holder.NewLock(name+":a"))
	both := latchkey.NewMultiLock(client.NewLock(name+":a"), client.NewLock(name+":b"))
	first := lockInBackground(t.Context(), both)
	awaitWaiting(t, client, latchkey.KindLock, 1)
	second := lockInBackground(t.Context(), both)
	awaitWaiting(t, client, latchkey.KindLock, 2)
	mustUnlock(t, hold)
	for _, each := range []<-chan acquisition{first, second} {
		got := rig.Await(t, soon, "both locks", each)
		require.NoError(t, got.err)
		mustUnlock(t, got.hold)
	}
	assert.Empty(t, client.Waiting())
}

// A RedLock waits between its rounds.
func TestWaitingForAMajorityIsCounted(t *testing.T) {
	t.Parallel()
	name, m := rig.Name(t), newMasters(t, 3)
	holding, err := m.unhurried(t, name).Lock(t.Context())
	require.NoError(t, err)
	var members []latchkey.Locker
	var client *latchkey.Client
	for _, server := range m.servers {
		each := connect(t, server)
		if client == nil {
			client = each
		}
		members = append(members, each.NewMutex(name))
	}
	waiting := lockInBackground(t.Context(), latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, members...))
	awaitWaiting(t, client, latchkey.KindRed, 1)
	require.NoError(t, holding.Unlock(t.Context()))
	got := rig.Await(t, soon, "the majority", waiting)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
	assert.Empty(t, client.Waiting())
}

// Readers wait for a writer, awaiters for a latch, and parties for each other.
func TestWaitingForOthersIsCounted(t *testing.T) {
	t.Parallel()
	name, client := rig.Name(t), connect(t, rig.Shared(), persistent)
	lock, latch, barrier := client.NewRWLock(name+":rw"), client.NewCountDownLatch(name+":latch"), client.NewBarrier(name+":barrier", 3)
	writing := mustLock(t, lock.Writer())
	_, err := latch.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	all := rig.Goroutines(t)
	for range 2 {
		all.Go(func() {
			assert.NoError(t, lock.Reader().Do(t.Context(), func(context.Context) error { return nil }))
		})
		all.Go(func() { assert.NoError(t, latch.Await(t.Context())) })
		all.Go(func() {
			_, err := barrier.Await(t.Context())
			assert.NoError(t, err)
		})
	}
	for _, kind := range []latchkey.Kind{latchkey.KindRead, latchkey.KindLatch, latchkey.KindBarrier} {
		awaitWaiting(t, client, kind, 2)
	}
	mustUnlock(t, writing)
	_, err = latch.CountDown(t.Context())
	require.NoError(t, err)
	_, err = barrier.Await(t.Context())
	require.NoError(t, err)
	all.Wait()
	assert.Empty(t, client.Waiting())
}

// A loop that observes an election, and tries, do not count as waiting calls.
func TestObservingIsNotWaiting(t *testing.T) {
	t.Parallel()
	name, client := rig.Name(t), connect(t, rig.Shared(), persistent)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen, over := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(over)
		for _, err := range client.NewElection(name).Observe(ctx) {
			if err == nil {
				seen <- struct{}{}
			}
		}
	}()
	rig.Await(t, soon, "that nobody leads", seen)
	lead, err := client.NewElection(name).TryCampaign(t.Context(), "")
	require.NoError(t, err)
	rig.Await(t, soon, "the leader", seen)
	_, err = client.NewElection(name).TryCampaign(t.Context(), "")
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.Empty(t, client.Waiting())
	require.NoError(t, lead.Resign(t.Context()))
	stop()
	<-over
}
