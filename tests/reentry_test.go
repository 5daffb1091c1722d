package tests

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Without an owner or the context of a hold nobody re-enters, not even the same goroutine.
func TestReentryIsNeverGuessed(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		lock := k.open(connect(t, rig.Shared()), rig.Name(t))
		hold := mustLock(t, lock)
		_, err := lock.TryLock(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, hold)
		_, err = lock.TryLock(hold.Context(context.Background()))
		assert.Error(t, err, "the context of a hold that is over has ended")
	})
}

// The ways to re-enter: the context, an owner on the context, By.
func TestReentry(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		client := connect(t, rig.Shared())
		lock, owner := k.open(client, rig.Name(t)), client.NewOwner()
		ctx := latchkey.WithOwner(t.Context(), owner)

		hold, err := lock.Lock(ctx)
		require.NoError(t, err)
		byContext, err := lock.TryLock(hold.Context(t.Context()))
		require.NoError(t, err)
		byOwner, err := lock.TryLock(ctx)
		require.NoError(t, err)
		byOption, err := lock.TryLock(t.Context(), latchkey.As(owner))
		require.NoError(t, err)

		assert.Equal(t, 4, countOf(hold))
		for _, inner := range []*latchkey.Hold{byContext, byOwner, byOption} {
			assert.Equal(t, hold.Token(), inner.Token(), "one token for the whole hold")
			mustUnlock(t, inner)
			assert.ErrorIs(t, inner.Unlock(t.Context()), latchkey.ErrNotHeld)
			assert.NoError(t, hold.Err())
		}
		assert.Equal(t, 1, countOf(hold))
		mustUnlock(t, hold)
		assert.Zero(t, countOf(hold))
	}, reentrant)
}

// A context carries only its own lock: two goroutines under one hold still exclude each other on
// every other lock.
func TestContextCarriesOneLockOnly(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		client := connect(t, rig.Shared())
		outer := mustLock(t, k.open(client, rig.Name(t)))
		other := k.open(client, rig.Name(t))
		ctx := outer.Context(t.Context())
		hold, err := other.Lock(ctx)
		require.NoError(t, err)
		_, err = other.TryLock(ctx)
		assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, hold)
		mustUnlock(t, outer)
	})
}

// A mutex refuses a re-entry instead of waiting for itself.
func TestMutexIsNotReentrant(t *testing.T) {
	client := connect(t, rig.Shared())
	lock := client.NewMutex(rig.Name(t))
	hold := mustLock(t, lock)
	_, err := lock.Lock(hold.Context(within(t, soon)))
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = lock.Lock(within(t, soon), latchkey.As(client.NewOwner()))
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
	mustUnlock(t, hold)
}

// An inner lease never shortens the outer lease, and neither does its release.
func TestReentryKeepsTheLongerLease(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		lock := k.open(connect(t, server), name)
		outer := mustLock(t, lock, latchkey.Lease(20*time.Minute))
		inner, err := lock.Lock(outer.Context(t.Context()), latchkey.Lease(time.Second))
		require.NoError(t, err)
		assert.InDelta(t, 20, admin.PTTL(name).Minutes(), 2)
		assert.InDelta(t, 20, inner.ValidFor().Minutes(), 2)
		mustUnlock(t, inner)
		assert.InDelta(t, 20, admin.PTTL(name).Minutes(), 2)

		inner, err = lock.Lock(outer.Context(t.Context()), latchkey.Lease(40*time.Minute))
		require.NoError(t, err)
		assert.InDelta(t, 40, admin.PTTL(name).Minutes(), 2, "and neither does it add up")
		mustUnlock(t, inner)
		mustUnlock(t, outer)
	}, reentrant)
}

// The lock is lost before the re-entry: the re-entry fails, and the new owner is left alone.
func TestReentryAfterTheLossIsRefused(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		client := connect(t, server)
		owner := client.NewOwner()
		lock := k.open(client, name)
		outer := mustLock(t, lock, latchkey.As(owner))
		admin.Do("DEL", name)
		other := mustLock(t, k.open(connect(t, server), name))

		inner, err := lock.TryLock(t.Context(), latchkey.As(owner))
		assert.Nil(t, inner)
		assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
		assert.ErrorIs(t, outer.Err(), latchkey.ErrLost, "the outer hold is told by the way")
		assert.NoError(t, other.Err())
		assert.Equal(t, int64(1), countInRedis(t, admin, name))
		mustUnlock(t, other)
	}, reentrant)
}

// Many goroutines enter and leave under one owner: the count is correct in between and at the end.
func TestConcurrentReentry(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		lock := k.open(connect(t, server), name)
		outer := mustLock(t, lock)
		ctx := outer.Context(t.Context())
		all := rig.Goroutines(t)
		for range 8 {
			all.Go(func() {
				for range rig.Sized(20) {
					inner, err := lock.Lock(ctx)
					if assert.NoError(t, err) {
						assert.NoError(t, inner.Unlock(ctx))
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, int64(1), countInRedis(t, admin, name))
		mustUnlock(t, outer)
		assert.NoError(t, free(admin, name)())
	}, reentrant)
}

// A second client re-enters the lock of the first with the owner that it was given. The lock is
// free when both have left.
func TestOwnerIsHandedOver(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		giver := mustLock(t, k.open(connect(t, server), name))
		owner, err := latchkey.ParseOwner(giver.Share().String())
		require.NoError(t, err)
		taker := mustLock(t, k.open(connect(t, server), name), latchkey.As(owner))
		mustUnlock(t, giver)
		assert.NoError(t, taker.Err())
		_, err = k.open(connect(t, server), name).TryLock(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, taker)
		assert.NoError(t, free(admin, name)())
	}, reentrant, guests)
}

// Invalid owners are not parsed.
func TestBadOwners(t *testing.T) {
	good := connect(t, rig.Shared()).NewOwner().String()
	_, err := latchkey.ParseOwner(good)
	require.NoError(t, err)
	for _, bad := range []string{"", ":", "x", good + "x", good + ":1", " " + good, "1:" + good, good[:36], good[:37] + "-1", good[:37] + "+1", good[:37] + "01"} {
		_, err := latchkey.ParseOwner(bad)
		assert.ErrorIs(t, err, latchkey.ErrInvalid, "%q", bad)
	}
}

// A re-entry fails for a while, and the hold is lost before it retries. Because its context
// outlives the hold, it goes on as an ordinary acquisition for a fresh owner.
func TestReentryGoesOnAfterTheLossAsAFreshOwner(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		lock := k.open(connectVia(t, server, tap.Addr(), latchkey.Options{Lease: time.Hour}), name)
		late := rig.WatchLateness(nil)
		outer := mustLock(t, lock)
		ctx := context.WithoutCancel(outer.Context(t.Context()))

		met := make(chan struct{})
		var once sync.Once
		heal := tap.Refuse(func(c rig.Command) bool {
			if !rig.Mentions("77777")(c) { // its commands are recognized by this lease
				return false
			}
			once.Do(func() { close(met) })
			return true
		}, "LOADING Redis is loading the dataset in memory")
		troubled := lockInBackground(ctx, lock, latchkey.Lease(77777*time.Millisecond))
		rig.Await(t, soon, "the trouble", met)
		admin.Do("DEL", name)
		bounded, cancel := context.WithTimeout(ctx, soon)
		defer cancel()
		_, err := lock.Lock(bounded)
		heal()
		if worst := late(); worst > time.Second && errors.Is(err, latchkey.ErrNotAcquired) {
			// An answer was so late that the re-entry is in doubt. Others wait until it is not.
			t.Skipf("not judged, on a machine that was %v late: %v", worst, err)
		}
		require.ErrorIs(t, err, latchkey.ErrLost)

		inner := rig.Await(t, soon, "the acquisition", troubled)
		require.NoError(t, inner.err)
		require.NoError(t, inner.hold.Err())
		assert.NotEqual(t, outer.Owner(), inner.hold.Owner())
		mustUnlock(t, inner.hold)
		assert.NoError(t, free(admin, name)())
	}, reentrant)
}
