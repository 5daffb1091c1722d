package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// A release names the owner with which its client wants the lock next, and the waiter leaves before the release is
// answered. However the ownership ends, the next owner is given up: what the server may have granted it is undone.
func TestOwnership_that_ends_leaves_no_next_owner(t *testing.T) {
	c := newTestClient(t, Options{Turn: -1})
	ctx := context.Background()
	null := transport.Answer{Null: true}
	for what, ends := range map[string]func(o *ownership){
		"released":           func(o *ownership) { o.finishRelease(null) },
		"others hold it":     func(o *ownership) { o.finishRelease(transport.Answer{}) },
		"failed":             func(o *ownership) { _ = o.releaseFailed(transport.Answer{Doubt: true}, context.Canceled) },
		"failed, released":   func(o *ownership) { _ = o.releaseFailed(null, context.Canceled); o.finishRelease(null) },
		"lost":               func(o *ownership) { o.lose(ErrLost, "the test loses it") },
		"its time is over":   func(o *ownership) { o.lease = lease.Term{}; o.endIfDue() },
		"the client closes":  func(o *ownership) { next, _ := o.end(ErrClosed); o.leaveFree(next, 0) },
		"a party has left":   func(o *ownership) { next, _ := o.end(nil); o.leave(next) },
		"released and freed": func(o *ownership) { o.finishRelease(null); o.finishRelease(null) },
	} {
		lock := c.NewRWLock(uniqueName(t, c) + what).Writer()
		h, err := lock.Lock(ctx)
		require.NoError(t, err)
		o := ownershipOf(h)
		gone, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { _, err := lock.Lock(gone); ended <- err }()
		require.Eventually(t, o.links.HasLine, time.Minute, time.Millisecond)
		_, err = h.handle().Backend().(*holdState).beginRelease()
		require.NoError(t, err)
		o.chooseNext()
		next := o.local.next
		require.NotNil(t, next, what)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		ends(o)
		require.Equal(t, over, next.currentPhase(), what)
		require.Equal(t, what == "its time is over" || what == "failed", next.mayBeAcquired(), what)
		require.False(t, next.Granted(0, ""), "a grant that comes now is given back")
		require.False(t, next.entry.slot.Expected(), what)
	}
}
