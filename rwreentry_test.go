package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// If a write hold ends just before a call reads under it, the call does not read along with the next holder.
func TestNest_under_a_hold_that_has_ended(t *testing.T) {
	t.Parallel()
	both := newTestClient(t, Options{Turn: MaxTurn}).NewRWLock("nest")
	hold, err := both.Writer().Lock(t.Context())
	require.NoError(t, err)
	s := hold.handle().Backend().(*ownership.Hold)
	o := s.Ownership
	granted, failed := make(chan *Hold, 1), make(chan error, 1)
	go func() {
		next, err := both.Writer().Lock(context.WithoutCancel(t.Context()))
		failed <- err
		granted <- next
	}()
	require.Eventually(t, func() bool { return o.Links.FirstInLine() != nil }, time.Minute, time.Millisecond)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, <-failed)
	passed := <-granted
	next := passed.handle().Backend().(*ownership.Hold)
	require.Same(t, o, next.Ownership, "passed on")
	n, err := rw.OtherSide(o, &both.Reader().inside.Lock, s)
	require.NoError(t, err)
	require.Nil(t, n)
	n, err = rw.OtherSide(o, &both.Reader().inside.Lock, next)
	require.NoError(t, err)
	require.NotNil(t, n)
	require.NoError(t, passed.Unlock(t.Context()))
}
