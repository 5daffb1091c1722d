package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The link goes silent at a random time while a renewed lock is held. The context of the hold
// always ends before another client acquires the lock.
func TestSilentCutIsNoticedInTime(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lanes = 5 // each opens clients, which must be done within the lease
		runs, server := rig.Sized(20), singleServer(t)
		for lane := range lanes {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				for range max(runs/lanes, 1) {
					require.NoError(t, rig.InTime(t, func(int) error { return cutOnce(t, k, server) }))
				}
			})
		}
	}, func(k kind) bool { return k.name != spinKind.name && k.name != fencedKind.name })
}

// cutOnce returns an error if the next holder had the lock before the first one learned of the
// loss.
func cutOnce(t *testing.T, k kind, server *rig.Server) error {
	t.Helper()
	const lease = 700 * time.Millisecond
	options, name := latchkey.Options{Lease: lease}, rig.Name(t)
	link := rig.NewLink(t, server)
	hold := mustLock(t, k.open(connectVia(t, server, link.Addr(), options), name))
	ended := make(chan time.Time, 1)
	ctx := hold.Context(t.Context())
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	waiter := lockInBackground(within(t, soon), k.open(connect(t, server, options), name))

	rest(rand.N(lease))
	link.Silence()
	next := rig.Await(t, soon, "the next holder", waiter)
	require.NoError(t, next.err)
	defer func() { _ = next.hold.Unlock(context.Background()) }() // its lease is short too
	select {
	case at := <-ended:
		require.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
		margin := next.at.Sub(at)
		t.Logf("told %v before the next holder had it", margin)
		if margin <= 0 {
			return fmt.Errorf("told %v after the next holder had it", -margin)
		}
		return nil
	default:
		return errors.New("the next holder has the lock, and the first was not told")
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
			rig.Await(t, soon, "the loss", hold.Lost())
			took := time.Since(start)
			t.Logf("told %v after the pause, lease %v", took.Round(time.Millisecond), lease)
			assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
			assert.Zero(t, hold.ValidFor())
			if took >= lease {
				return fmt.Errorf("told %v after the pause: the lease can be over", took)
			}
			return nil
		}))
	}, func(k kind) bool { return k.name == mutexKind.name || k.name == lockKind.name }) // the others hold like a Lock
}

// A server that is stopped for less than a lease costs no hold. After more than a lease the hold is
// lost, and a waiter gets the lock.
func TestServerStoppedForLessAndMoreThanALease(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	rig.Need(t, rig.Process)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 5 * time.Second
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
		stop(lease / 4)
		rig.Throughout(t, lease, "the hold lasts", hold.Err)
		stop(lease / 4)
		mustUnlock(t, hold)
		second := rig.Await(t, soon, "the waiter", waiting)
		require.NoError(t, second.err)

		waiting = lockInBackground(within(t, time.Minute), first)
		stop(lease + lease/4)
		require.ErrorIs(t, second.hold.Err(), latchkey.ErrLost)
		third := rig.Await(t, soon, "whoever waits", waiting)
		require.NoError(t, third.err)
		require.ErrorIs(t, second.hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		require.NoError(t, third.hold.Err(), "it is not touched by the release of another")
		mustUnlock(t, third.hold)
		rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), "stopped"))
	}, func(k kind) bool { return k.name == mutexKind.name || k.queued || k.sided })
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

		rig.Await(t, soon, "the loss at the next renewal", ctx.Done())
		assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
		assert.False(t, admin.Exists(name), "the key is not made again")
		err := hold.Unlock(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrNotHeld)
		assert.ErrorIs(t, err, latchkey.ErrLost)
	})
}

// If another client has acquired the lock in between, the first hold is lost for good. Its renewal
// and its release do not affect the other hold.
func TestRenewalNeverTakesAnothersHold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		first := mustLock(t, k.open(connect(t, server, latchkey.Options{Lease: time.Second}), name))
		admin.Do("DEL", name)
		second := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(time.Hour))

		rig.Await(t, soon, "the loss", first.Lost())
		assert.ErrorIs(t, first.Unlock(t.Context()), latchkey.ErrNotHeld)
		ttl := admin.PTTL(name)
		assert.Greater(t, ttl, 50*time.Minute)
		assert.LessOrEqual(t, ttl, time.Hour)
		assert.NoError(t, second.Err())
		mustUnlock(t, second)
	})
}

// A hold with a fixed lease ends with the lease.
func TestFixedLeaseEnds(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = time.Second
		server, name := rig.Shared(), rig.Name(t)
		start := time.Now()
		hold := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(lease))
		waiter := lockInBackground(within(t, soon), k.open(connect(t, server), name))

		rig.Await(t, soon, "the loss", hold.Lost())
		assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
		next := rig.Await(t, soon, "the next holder", waiter)
		require.NoError(t, next.err)
		assert.GreaterOrEqual(t, next.at.Sub(start), lease)
		assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
		assert.NoError(t, next.hold.Err(), "nobody else's hold was touched")
		mustUnlock(t, next.hold)
	})
}

// A stuck worker has a MaxHold: renewals keep the key until then, the context ends at the limit,
// and the key is gone soon after.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Shared()
		admin := rig.NewAdmin(t, server)
		inTime(t, func(lease time.Duration) (renewed bool) {
			name, limit := rig.Name(t), lease*3/2
			lock := k.open(connect(t, server, latchkey.Options{Lease: lease}), name)
			start := time.Now()
			hold := mustLock(t, lock, latchkey.MaxHold(limit))
			ctx := hold.Context(t.Context())

			rig.Await(t, 3*soon, "the limit", ctx.Done())
			took := time.Since(start)
			if !errors.Is(context.Cause(ctx), latchkey.ErrMaxHold) {
				return false
			}
			assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
			assert.Greater(t, took, lease)
			rig.Eventually(t, soon, "the key goes", free(admin, name))
			assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
			return true
		})
	})
}

// After ForceUnlock by another client the holder learns of the loss at its next renewal.
func TestForceUnlockIsALoss(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		hold := mustLock(t, k.open(connect(t, server, latchkey.Options{Lease: 5 * time.Second}), name))
		operator := connect(t, server)
		held, err := operator.ForceUnlock(t.Context(), name)
		require.NoError(t, err)
		assert.True(t, held)
		rig.Await(t, soon, "the loss", hold.Lost())

		held, err = operator.ForceUnlock(t.Context(), name)
		require.NoError(t, err)
		assert.False(t, held, "it is free already")
	})
}
