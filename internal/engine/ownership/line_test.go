package ownership_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// behind returns the line of a lock's key, or nil.
func behind(l *acquire.Lock) *line.Line { return l.Client.Lines.Known(l.LineKey()) }

func ownershipOf(h *hold.Handle) *ownership.Ownership { return h.Backend().(*ownership.Hold).Ownership }

// newLock returns a re-entrant lock.
func newLock(c *core.Parts, name string) *acquire.Lock {
	return acquire.NewLock(c, lock.Reentrant, name)
}

// lockOn acquires a lock, and waits for it.
func lockOn(ctx context.Context, l *acquire.Lock, settings ...request.Setting) (*hold.Handle, error) {
	return l.Acquire(ctx, "lock", true, settings)
}

func TestHold_that_nobody_contends_for_has_no_wait_queue(t *testing.T) {
	c := testredis.NewEngine(t)
	ctx := context.Background()
	for what, spec := range map[string]*acquire.Spec{
		"lock": lock.Reentrant, "mutex": lock.Mutex, "fenced": lock.Fenced, "write": rw.Write,
	} {
		l := acquire.NewLock(c, spec, testredis.UniqueName(t, c)+what)
		for try, waits := range map[string]bool{"Lock": true, "TryLock": false} {
			h, err := l.Acquire(ctx, "lock", waits, nil)
			require.NoError(t, err)
			if what != "write" || try == "TryLock" { // a lock with two lines keeps them
				require.Nil(t, c.Lines.Known(ownershipOf(h).LineKey()), "%s %s", what, try)
			}
			require.NoError(t, h.Unlock(ctx))
			require.Nil(t, c.Lines.Known(ownershipOf(h).LineKey()), "%s %s", what, try)
			require.Empty(t, owners.All(c))
		}
	}
}

// The line stays after a waiter has come and gone, since it may have learned something.
func TestHold_keeps_a_wait_queue_in_which_somebody_waited(t *testing.T) {
	c := testredis.NewEngine(t)
	ctx := context.Background()
	lock := newLock(c, testredis.UniqueName(t, c))
	h, err := lockOn(ctx, lock)
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { _, err := lockOn(gone, lock); ended <- err }()
	require.Eventually(t, ownershipOf(h).Links.HasLine, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NotNil(t, behind(lock))
	require.NoError(t, h.Unlock(ctx))
	require.Nil(t, behind(lock), "it goes with the last user")
}

// A call that gives up while another call of its owner is in flight gets ErrNotAcquired: the server
// had no problem.
func TestHold_is_what_the_second_call_of_an_owner_waits_for(t *testing.T) {
	c := testredis.NewEngine(t)
	ctx := context.Background()
	lock := newLock(c, testredis.UniqueName(t, c))
	h, err := lockOn(ctx, lock)
	require.NoError(t, err)
	owner := identity.New(c.ID, c.Number())
	first := owners.Of(c).Find(&lock.Lock, owner)
	require.NoError(t, first.SendMu.Lock(ctx)) // a TryLock of that owner is in flight, and nothing is sent before it ends
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = lockOn(short, lock, request.Setting{Kind: request.As, Owner: owner})
	require.ErrorIs(t, err, fault.ErrNotAcquired)
	first.SendMu.Unlock()
	require.NoError(t, h.Unlock(ctx))
}

func TestLines_vanish_when_unused(t *testing.T) {
	c := testredis.NewEngine(t)
	var owned []weak.Pointer[ownership.Ownership]
	for i := range 100 {
		lock := newLock(c, testredis.UniqueName(t, c)+string(rune('a'+i%26)))
		h, err := lockOn(context.Background(), lock)
		require.NoError(t, err)
		owned = append(owned, weak.Make(ownershipOf(h)))
		require.NoError(t, h.Unlock(context.Background()))
		require.Nil(t, c.Lines.Known(lock.LineKey()))
	}
	require.Empty(t, owners.All(c))
	require.Empty(t, c.Lines.Held())
	require.Eventually(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(owned, func(o weak.Pointer[ownership.Ownership]) bool { return o.Value() != nil })
	}, time.Minute, time.Millisecond, "nothing of the client knows an ownership that is over")
}
