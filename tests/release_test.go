package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A late release meets a newer hold of the same client. The newer hold has another owner, and
// survives.
func TestLateReleaseSparesTheNewerHold(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		client := connectVia(t, server, tap.Addr(), brief)
		lock := k.open(client, name)
		warmUp(t, k)
		first := mustLock(t, lock, latchkey.Lease(2*time.Second))
		taken := tap.Lose(1, rig.Any, rig.CutRequest)
		heal := tap.LoseAll(rig.Mentions(name), rig.CutRequest)
		require.Error(t, first.Unlock(t.Context()))
		heal()
		second := mustLock(t, lock)

		admin.Do(rig.Await(t, soon, "the release", taken).Args...) // the first release arrives now
		i, err := lock.Inspect(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []latchkey.Holder{{Owner: second.Owner(), Count: 1, Write: k.sided}}, i.Holders)
		mustUnlock(t, second)
	})
}

// The lease ends before Unlock gives up. The waiters in line, and later callers, get the lock when
// the key has expired.
func TestReleaseThatFailsAfterTheLease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		lock := k.open(connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 1200 * time.Millisecond}), name)
		for _, waiters := range []int{0, 2} {
			hold := mustLock(t, lock, latchkey.Lease(time.Second))
			passed, ctx := make(chan acquisition, waiters), within(t, time.Minute)
			for range waiters {
				go func() { passed <- <-lockInBackground(ctx, lock) }()
			}
			heal := tap.LoseAll(rig.Mentions(name), rig.CutRequest)
			require.Error(t, hold.Unlock(t.Context()))
			require.Error(t, hold.Err())
			heal()
			for range waiters {
				got := rig.Await(t, 2*soon, "a waiter", passed)
				require.NoError(t, got.err)
				unlockInTheEnd(t, got.hold) // not in one budget on a busy machine
			}
			unlockInTheEnd(t, mustLock(t, lock))
		}
	})
}

// The first Unlock does not reach the server; the second one releases the lock.
func TestUnlockMayBeRepeated(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		hold := mustLock(t, k.open(connectVia(t, server, tap.Addr(), brief), name))
		heal := tap.LoseAll(rig.Mentions(name), rig.CutRequest)
		err := hold.Unlock(t.Context())
		require.Error(t, err)
		assert.NotErrorIs(t, err, latchkey.ErrNotHeld, "nobody knows that")
		assert.True(t, admin.Exists(name))
		heal()
		rig.Eventually(t, soon, "the release", func() error { return hold.Unlock(t.Context()) })
		assert.NoError(t, free(admin, name)())
		assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
	})
}

// If nobody calls Unlock again, the client repeats the release in the background.
func TestFailedReleaseIsRepeated(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		hold := mustLock(t, k.open(connectVia(t, server, tap.Addr(), brief), name))
		heal := tap.LoseAll(rig.Mentions(name), rig.CutRequest)
		require.Error(t, hold.Unlock(t.Context()))
		heal()
		rig.Eventually(t, soon, "the release, before the lease ends", free(rig.NewAdmin(t, server), name))
	})
}

// Of many concurrent Unlock calls one releases; the others get an error that says that the hold is
// over.
func TestConcurrentUnlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		lock := k.open(connect(t, server), name)
		for range rig.Sized(50) {
			hold := mustLock(t, lock)
			var mu sync.Mutex
			released := 0
			slowestOf(4, func(int) {
				err := hold.Unlock(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					released++
				} else {
					assert.ErrorIs(t, err, latchkey.ErrNotHeld)
				}
			})
			assert.Equal(t, 1, released)
		}
	})
}

// Another goroutine may release a hold, and its context says what happened.
func TestHoldContext(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		hold := mustLock(t, k.open(connect(t, rig.Shared()), rig.Name(t)))
		parent, cancel := context.WithCancel(t.Context())
		withParent, alone := hold.Context(parent), hold.Context(t.Context())
		cancel()
		rig.Await(t, soon, "the end with the parent", withParent.Done())
		assert.ErrorIs(t, context.Cause(withParent), context.Canceled)
		assert.NoError(t, alone.Err())
		assert.NoError(t, hold.Err())

		done := make(chan error)
		go func() { done <- hold.Unlock(context.Background()) }()
		require.NoError(t, rig.Await(t, soon, "the release", done))
		assert.ErrorIs(t, context.Cause(alone), latchkey.ErrNotHeld)
		assert.NotErrorIs(t, context.Cause(alone), latchkey.ErrLost)
		assert.ErrorIs(t, hold.Err(), latchkey.ErrNotHeld)
		select {
		case <-hold.Lost():
			t.Error("a release is no loss")
		default:
		}
	})
}
