package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An acquisition that too few replicas confirm is undone, and the client expects no messages for it any more.
func TestSemPlace_that_is_undone(t *testing.T) {
	c := newTestClient(t, Options{Replicas: Replicas{Min: 1, Timeout: 10 * time.Millisecond}})
	s := c.NewSemaphore(uniqueName(t, c))
	_, err := s.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	c.handover.listenFor(s.names.Key, "another", &semPlace{wake: func() {}})
	require.ErrorIs(t, s.Acquire(t.Context(), 1, Wait(time.Minute)), ErrNotReplicated)
	c.handover.forgetName(s.names.Key, "another")
	for _, each := range c.handover.channels {
		require.Empty(t, each.waiting)
	}
}
