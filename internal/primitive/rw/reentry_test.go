package rw_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// If a write hold ends just before a call reads under it, the call does not read along with the
// next holder.
func TestNest_under_a_hold_that_has_ended(t *testing.T) {
	t.Parallel()
	c := testredis.NewEngine(t, func(s *testredis.Settings) { s.Turn = time.Second })
	read, write := acquire.NewLock(c, rw.Read, "nest"), acquire.NewLock(c, rw.Write, "nest")
	first, err := write.Acquire(t.Context(), "lock", true, nil)
	require.NoError(t, err)
	s := first.Backend().(*ownership.Hold)
	o := s.Ownership
	granted, failed := make(chan *hold.Handle, 1), make(chan error, 1)
	go func() {
		next, err := write.Acquire(context.WithoutCancel(t.Context()), "lock", true, nil)
		failed <- err
		granted <- next
	}()
	require.Eventually(t, func() bool { return o.Links.FirstInLine() != nil }, time.Minute, time.Millisecond)
	require.NoError(t, first.Unlock(t.Context()))
	require.NoError(t, <-failed)
	passed := <-granted
	next := passed.Backend().(*ownership.Hold)
	require.Same(t, o, next.Ownership, "passed on")
	n, err := rw.OtherSide(o, &read.Lock, &s.Item)
	require.NoError(t, err)
	require.Nil(t, n)
	n, err = rw.OtherSide(o, &read.Lock, &next.Item)
	require.NoError(t, err)
	require.NotNil(t, n)
	require.NoError(t, passed.Unlock(t.Context()))
}
