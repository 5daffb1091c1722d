package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Goroutines that wait for a hold of their own client do not poll the server. The client queries it
// once per poll ceiling.

// silentInLine selects the kinds whose waiters send nothing while their own client holds the lock.
func silentInLine(k kind) bool { return !k.queued }

// ForceUnlock takes the lock from its holder long before the hold would be renewed or expire. Both
// the holder and the waiter behind it learn of this.
func TestForceUnlock_of_a_hold_that_its_client_waits_for(t *testing.T) {
	t.Parallel()
	for what, options := range map[string][]latchkey.LockOption{
		"renewed":       nil,
		"a fixed lease": {latchkey.Lease(time.Minute)},
		"a limit":       {latchkey.MaxHold(time.Minute)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachKind(t, func(t *testing.T, k kind) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				lock := k.open(connect(t, server, latchkey.Options{Lease: time.Minute, Tuning: latchkey.Tuning{PollCeiling: time.Second}}), name)
				hold := mustLock(t, lock, options...)
				waiter := lockInLine(within(t, time.Minute), t, lock)
				forced, err := connect(t, server).ForceUnlock(t.Context(), name)
				require.NoError(t, err)
				require.True(t, forced)
				next := rig.Await(t, soon, "the waiter", waiter)
				require.NoError(t, next.err)
				assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
				require.NoError(t, next.hold.Err())
				mustUnlock(t, next.hold)
			}, silentInLine)
		})
	}
}

// For a hold with a fixed lease the client only verifies the hold and changes nothing. It sends
// nothing if nobody waits.
func TestFixedLease_is_verified_and_not_renewed(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease, ceiling = time.Minute, 100 * time.Millisecond
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		lock := k.open(connectVia(t, server, tap.Addr(), latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: ceiling}}), name)
		hold := mustLock(t, lock, latchkey.Lease(lease))
		acquired := time.Now()
		tap.Forget()
		rest(5 * ceiling)
		require.Empty(t, tap.Executed(rig.Mentions(name)))

		waiter := lockInLine(within(t, time.Minute), t, lock)
		inLine := time.Now()
		verified := func(least int) {
			t.Helper()
			rig.Eventually(t, soon, "the client asks", func() error {
				if n := len(tap.Executed(rig.Mentions(name))); n < least {
					return fmt.Errorf("%d times so far", n)
				}
				return nil
			})
		}
		verified(3)
		assert.LessOrEqual(t, len(tap.Executed(rig.Mentions(name))), 3+int(time.Since(inLine)/(ceiling/2)))
		elapsed := time.Since(acquired)
		assert.LessOrEqual(t, hold.ValidFor(), lease-elapsed+time.Millisecond)
		assert.LessOrEqual(t, admin.PTTL(name), lease-elapsed+time.Millisecond)
		admin.Do("PERSIST", name)
		tap.Forget()
		verified(3)
		assert.True(t, admin.Exists(name))
		require.NoError(t, hold.Err())
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}, silentInLine)
}
