package ownership_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// A release names the owner with which its client wants the lock next, and the waiter leaves before
// the release is answered. However the ownership ends, the next owner is given up: what the server
// may have granted it is undone.
func TestOwnership_that_ends_leaves_no_next_owner(t *testing.T) {
	c := testredis.NewEngine(t, func(s *testredis.Settings) { s.Turn = -1 })
	ctx := context.Background()
	null := transport.Answer{Null: true}
	for what, ends := range map[string]func(o *ownership.Ownership){
		"released":           func(o *ownership.Ownership) { o.FinishRelease(null) },
		"others hold it":     func(o *ownership.Ownership) { o.FinishRelease(transport.Answer{}) },
		"failed":             func(o *ownership.Ownership) { _ = o.ReleaseFailed(transport.Answer{Doubt: true}, context.Canceled) },
		"failed, released":   func(o *ownership.Ownership) { _ = o.ReleaseFailed(null, context.Canceled); o.FinishRelease(null) },
		"lost":               func(o *ownership.Ownership) { o.Lose(fault.ErrLost, "the test loses it") },
		"its time is over":   func(o *ownership.Ownership) { o.Lease = lease.Term{}; o.EndIfDue() },
		"the client closes":  func(o *ownership.Ownership) { next, _ := o.End(fault.ErrClosed); o.Leave(next, true, 0) },
		"a party has left":   func(o *ownership.Ownership) { next, _ := o.End(nil); o.Leave(next, false, 0) },
		"released and freed": func(o *ownership.Ownership) { o.FinishRelease(null); o.FinishRelease(null) },
	} {
		lock := acquire.NewLock(c, rw.Write, testredis.UniqueName(t, c)+what)
		h, err := lockOn(ctx, lock)
		require.NoError(t, err)
		o := ownershipOf(h)
		gone, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { _, err := lockOn(gone, lock); ended <- err }()
		require.Eventually(t, o.Links.HasLine, time.Minute, time.Millisecond)
		_, err = h.Backend().(*ownership.Hold).BeginRelease()
		require.NoError(t, err)
		o.ChooseNext()
		next := o.Turn.Next
		require.NotNil(t, next, what)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		ends(o)
		require.Equal(t, ownership.Over, next.CurrentPhase(), what)
		require.Equal(t, what == "its time is over" || what == "failed", next.Doubt.Acquisition(), what)
		require.False(t, next.Entry.Granted(0, ""), "a grant that comes now is given back")
		require.False(t, next.Entry.Expected(), what)
	}
}
