package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A wait is reported once, when it has lasted for the limit behind one and the same ownership.
func TestOwnWait(t *testing.T) {
	const limit = 30 * time.Second
	var w ownWait
	require.False(t, w.isStuck(7, 0, limit), "the first check")
	require.False(t, w.isStuck(7, limit-1, limit))
	require.True(t, w.isStuck(7, limit, limit))
	require.False(t, w.isStuck(7, 2*limit, limit), "once")

	w = ownWait{}
	require.False(t, w.isStuck(7, 0, limit))
	require.False(t, w.isStuck(8, limit, limit), "another ownership")
	require.False(t, w.isStuck(0, 2*limit-1, limit), "none: another client has the lock")
	require.False(t, w.isStuck(0, 4*limit, limit))
	require.False(t, w.isStuck(8, 5*limit, limit))
	require.True(t, w.isStuck(8, 6*limit, limit))

	w = ownWait{quiet: true}
	require.False(t, w.isStuck(7, 0, limit))
	require.False(t, w.isStuck(7, limit, limit), "the call has a deadline")
}
