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

// The link goes silent at a random time while a renewed lock is held. The context of the hold always ends before
// another client acquires the lock.
func TestSilentCutIsNoticedInTime(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		runs, lanes, server := max(rig.Sized(50), 10), 10, singleServer(t)
		if server.Clustered() {
			lanes = 5 // opening a client takes longer there, and must be done within the lease
		}
		var mu sync.Mutex
		var margins []time.Duration
		var all sync.WaitGroup
		for lane := range lanes {
			all.Go(func() {
				for run := range runs / lanes {
					var margin time.Duration
					err := rig.InTime(t, func(before int) (err error) {
						margin, err = cutOnce(t, k, server, fmt.Sprintf("%s %d %d %d", rig.Name(t), lane, run, before))
						return err
					})
					mu.Lock()
					if assert.NoError(t, err) {
						margins = append(margins, margin)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		require.Len(t, margins, runs)
		least := margins[0]
		for _, m := range margins {
			least = min(least, m)
		}
		t.Logf("%d of %d; the least time between the loss and the next holder: %v", len(margins), runs, least)
		assert.Positive(t, least)
	}, func(k kind) bool { return k.name != spinKind.name && k.name != fencedKind.name })
}

// cutOnce returns how long before the next acquisition the first holder learned of the loss.
func cutOnce(t *testing.T, k kind, server *rig.Server, name string) (margin time.Duration, err error) {
	t.Helper()
	const lease = 700 * time.Millisecond
	options := latchkey.Options{Lease: lease}
	link := rig.NewLink(t, server)
	hold := mustLock(t, k.open(connectVia(t, server, link.Addr(), options), name))
	ended := make(chan time.Time, 1)
	ctx := hold.Context(t.Context())
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	waiter := lockInBackground(within(t, soon), k.open(connect(t, server, options), name))

	rest(rand.N(lease))
	link.Silence()
	next := rig.Await(t, soon, "the next holder", waiter)
	if next.err != nil {
		return 0, next.err
	}
	defer func() { _ = next.hold.Unlock(context.Background()) }() // its lease is short too
	select {
	case at := <-ended:
		if cause := context.Cause(ctx); !errors.Is(cause, latchkey.ErrLost) {
			return 0, fmt.Errorf("the context ended with %w", cause)
		}
		return next.at.Sub(at), nil
	default:
		return 0, errors.New("the next holder has the lock, and the first was not told")
	}
}

// rest waits for d. It gives a fault time to happen and is no synchronization.
func rest(d time.Duration) { <-time.After(d) }

// If the server stops answering, the hold ends by the client's own clock.
func TestPausedServerEndsTheHold(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = time.Second
		server := rig.Fresh(t)
		client := connect(t, server, latchkey.Options{Lease: lease})
		require.NoError(t, rig.InTime(t, func(before int) error {
			hold := mustLock(t, k.open(client, fmt.Sprint("paused", before)))
			server.Pause(t)
			defer server.Resume(t)
			start := time.Now()
			rig.Await(t, lease+leeway, "the loss", hold.Lost())
			took := time.Since(start)
			t.Logf("told %v after the pause, lease %v", took.Round(time.Millisecond), lease)
			assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
			assert.Zero(t, hold.ValidFor())
			if took >= lease {
				return fmt.Errorf("told %v after the pause: the lease can be over", took)
			}
			return nil
		}))
	})
}

// A server that is stopped for less than a lease costs no hold. After more than a lease the hold is lost, and a waiter
// gets the lock.
func TestServerStoppedForLessAndMoreThanALease(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	rig.Need(t, rig.Process)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 2 * time.Second
		server := rig.Fresh(t)
		options := latchkey.Options{Lease: lease}
		first, next := k.open(connect(t, server, options), "stopped"), k.open(connect(t, server, options), "stopped")
		hold := mustLock(t, first)
		waiting := lockInBackground(within(t, time.Minute), next)
		stop := func(d time.Duration) {
			server.Pause(t)
			rest(d)
			server.Resume(t)
		}
		stop(lease / 3)
		rig.Throughout(t, 3*lease/2, "the hold lasts", hold.Err)
		stop(lease / 3)
		mustUnlock(t, hold)
		second := rig.Await(t, soon, "the waiter", waiting)
		require.NoError(t, second.err)

		waiting = lockInBackground(within(t, time.Minute), first)
		stop(2 * lease)
		require.ErrorIs(t, second.hold.Err(), latchkey.ErrLost)
		third := rig.Await(t, soon, "whoever waits", waiting)
		require.NoError(t, third.err)
		require.ErrorIs(t, second.hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		require.NoError(t, third.hold.Err(), "it is not touched by the release of another")
		mustUnlock(t, third.hold)
		rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), "stopped"))
	})
}

// A holder whose key disappears learns of the loss at the next renewal.
func TestVanishedKeyIsALoss(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		hold := mustLock(t, k.open(connect(t, server, latchkey.Options{Lease: time.Second}), name))
		ctx := hold.Context(t.Context())
		admin.Do("DEL", name)

		rig.Await(t, time.Second, "the loss at the next renewal", ctx.Done())
		assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
		assert.False(t, admin.Exists(name), "the key is not made again")
		err := hold.Unlock(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrNotHeld)
		assert.ErrorIs(t, err, latchkey.ErrLost)
	})
}

// If another client has acquired the lock in between, the first hold is lost for good. Its renewal and its release do
// not affect the other hold.
func TestRenewalNeverTakesAnothersHold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		first := mustLock(t, k.open(connect(t, server, latchkey.Options{Lease: time.Second}), name))
		admin.Do("DEL", name)
		second := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(20*time.Second))

		rig.Await(t, soon, "the loss", first.Lost())
		assert.ErrorIs(t, first.Unlock(t.Context()), latchkey.ErrNotHeld)
		ttl := admin.PTTL(name)
		assert.Greater(t, ttl, 15*time.Second)
		assert.LessOrEqual(t, ttl, 20*time.Second)
		assert.NoError(t, second.Err())
		mustUnlock(t, second)
	})
}

// A hold with a fixed lease ends with the lease.
func TestFixedLeaseEnds(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 300 * time.Millisecond
		server, name := rig.Shared(), rig.Name(t)
		start := time.Now()
		hold := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(lease))
		waiter := lockInBackground(within(t, soon), k.open(connect(t, server), name))

		rig.Await(t, lease+leeway, "the loss", hold.Lost())
		assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
		next := rig.Await(t, soon, "the next holder", waiter)
		require.NoError(t, next.err)
		assert.GreaterOrEqual(t, next.at.Sub(start), lease)
		assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
		assert.NoError(t, next.hold.Err(), "nobody else's hold was touched")
		mustUnlock(t, next.hold)
	})
}

// A stuck worker has a MaxHold: renewals keep the key until then, the context ends at the limit, and the key is gone
// soon after.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease, limit = 2 * time.Second, 5 * time.Second
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		lock := k.open(connect(t, server, latchkey.Options{Lease: lease}), name)
		start := time.Now()
		hold := mustLock(t, lock, latchkey.MaxHold(limit))
		ctx := hold.Context(t.Context())

		rig.Await(t, soon, "the limit", ctx.Done())
		took := time.Since(start)
		assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrMaxHold)
		assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
		assert.InDelta(t, limit.Seconds(), took.Seconds(), leeway.Seconds())
		rig.Eventually(t, lease+leeway, "the key goes", free(admin, name))
		assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
	})
}

// After ForceUnlock by another client the holder learns of the loss at its next renewal.
func TestForceUnlockIsALoss(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		hold := mustLock(t, k.open(connect(t, server, latchkey.Options{Lease: time.Second}), name))
		operator := connect(t, server)
		held, err := operator.ForceUnlock(t.Context(), name)
		require.NoError(t, err)
		assert.True(t, held)
		rig.Await(t, time.Second, "the loss", hold.Lost())

		held, err = operator.ForceUnlock(t.Context(), name)
		require.NoError(t, err)
		assert.False(t, held, "it is free already")
	})
}
