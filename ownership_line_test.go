package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// behind returns the line of a lock's key, or nil.
func behind(l *Lock) *line.Line { return l.inside.Client.Lines.Known(l.inside.LineKey()) }

func ownershipOf(h *Hold) *ownership.Ownership {
	return h.handle().Backend().(*ownership.Hold).Ownership
}

func TestHold_that_nobody_contends_for_has_no_wait_queue(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	for what, lock := range map[string]Locker{
		"lock": c.NewLock(uniqueName(t, c) + "lock"), "mutex": c.NewMutex(uniqueName(t, c) + "mutex"),
		"fenced": c.NewFencedLock(uniqueName(t, c) + "fenced"), "write": c.NewRWLock(uniqueName(t, c) + "write").Writer(),
	} {
		for try, acquire := range map[string]func() (*Hold, error){
			"Lock":    func() (*Hold, error) { return lock.Lock(ctx) },
			"TryLock": func() (*Hold, error) { return lock.TryLock(ctx) },
		} {
			h, err := acquire()
			require.NoError(t, err)
			if what != "write" || try == "TryLock" { // a lock with two lines keeps them
				require.Nil(t, c.engine().Lines.Known(ownershipOf(h).Lock.LineKey()), "%s %s", what, try)
			}
			require.NoError(t, h.Unlock(ctx))
			require.Nil(t, c.engine().Lines.Known(ownershipOf(h).Lock.LineKey()), "%s %s", what, try)
			require.Empty(t, c.engine().Registry.All())
		}
	}
}

// The line stays after a waiter has come and gone, since it may have learned something.
func TestHold_keeps_a_wait_queue_in_which_somebody_waited(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	lock := c.NewLock(uniqueName(t, c))
	h, err := lock.Lock(ctx)
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { _, err := lock.Lock(gone); ended <- err }()
	require.Eventually(t, ownershipOf(h).Links.HasLine, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NotNil(t, behind(lock))
	require.NoError(t, h.Unlock(ctx))
	require.Nil(t, behind(lock), "it goes with the last user")
}

// A call that gives up while another call of its owner is in flight gets ErrNotAcquired: the server had no problem.
func TestHold_is_what_the_second_call_of_an_owner_waits_for(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	lock := c.NewLock(uniqueName(t, c))
	h, err := lock.Lock(ctx)
	require.NoError(t, err)
	owner := c.NewOwner()
	first := c.engine().Registry.Find(&lock.inside.Lock, identity.Owner(owner))
	require.NoError(t, first.SendMu().Lock(ctx)) // a TryLock of that owner is in flight, and nothing is sent before it ends
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = lock.Lock(short, As(owner))
	require.ErrorIs(t, err, ErrNotAcquired)
	first.SendMu().Unlock()
	require.NoError(t, h.Unlock(ctx))
}
