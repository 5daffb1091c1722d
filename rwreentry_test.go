package latchkey

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// If a write hold ends just before a call reads under it, the call does not read along with the next holder.
func TestNest_under_a_hold_that_has_ended(t *testing.T) {
	t.Parallel()
	rw := newTestClient(t, Options{Turn: MaxTurn}).NewRWLock("nest")
	hold, err := rw.Writer().Lock(t.Context())
	require.NoError(t, err)
	s := hold.inner().(*holdState)
	o := s.ownership
	next := o.succeed(s, func() bool { return true })
	require.NotNil(t, next)
	n, err := o.otherSide(rw.Reader().primitive, s)
	require.NoError(t, err)
	require.Nil(t, n)
	n, err = o.otherSide(rw.Reader().primitive, next)
	require.NoError(t, err)
	require.NotNil(t, n)
	require.NoError(t, newHold(next).Unlock(t.Context()))
}
