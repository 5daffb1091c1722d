package ownership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// An Unlock that gives up while a re-entry is in flight does not keep the next in line from the
// front once that re-entry has failed.
func TestRelease_that_gives_up_before_a_failed_reentry(t *testing.T) {
	t.Parallel()
	c := testredis.NewEngine(t, func(s *testredis.Settings) { s.RetryBudget = 100 * time.Millisecond })
	p := acquire.NewLock(c, lock.Reentrant, testredis.UniqueName(t, c))
	h, err := p.Acquire(t.Context(), "lock", true, nil)
	require.NoError(t, err)
	o := h.Backend().(*ownership.Hold).Ownership
	next := make(chan error, 1)
	go func() {
		h, err := p.Acquire(t.Context(), "lock", true, nil)
		if err == nil {
			err = h.Unlock(t.Context())
		}
		next <- err
	}()
	require.Eventually(t, o.Links.HasLine, time.Minute, time.Millisecond)
	require.NoError(t, o.SendMu.Lock(t.Context())) // for the re-entry
	require.Equal(t, 2, o.Enter(&request.Request{}, nil))
	require.ErrorIs(t, h.Unlock(t.Context()), fault.ErrUnknownOutcome)
	require.True(t, o.Links.HasLine())
	o.DropEntry()
	require.False(t, o.Links.HasLine(), "it is in front, although nothing can be released yet")
	o.SendMu.Unlock()
	require.NoError(t, <-next)
}

// The release of a re-entry raises the lease of the outer hold, also if the client has to repeat it
// in the background.
func TestRelease_in_the_background_raises_the_lease(t *testing.T) {
	t.Parallel()
	c := testredis.NewEngine(t, func(s *testredis.Settings) {
		s.Lease, s.RetryBudget = time.Hour, 100*time.Millisecond // no renewal is due before the end of the test
	})
	p := acquire.NewLock(c, lock.Reentrant, testredis.UniqueName(t, c))
	outer, err := p.Acquire(t.Context(), "lock", true, nil)
	require.NoError(t, err)
	inner, err := p.Acquire(outer.Context(t.Context()), "lock", true, nil)
	require.NoError(t, err)
	o := inner.Backend().(*ownership.Hold).Ownership
	require.NoError(t, o.SendMu.Lock(t.Context())) // another command for the owner is in flight
	require.ErrorIs(t, inner.Unlock(t.Context()), fault.ErrUnknownOutcome)
	before := outer.ValidFor()
	o.SendMu.Unlock()
	require.Eventually(t, func() bool { return outer.ValidFor() > before }, time.Minute, time.Millisecond)
	require.NoError(t, outer.Unlock(t.Context()))
}
