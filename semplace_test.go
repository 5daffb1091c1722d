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
	another := newSlot(s.names.Key, "another", &semPlace{wake: func() {}})
	c.inbox.listen(&another)
	require.ErrorIs(t, s.Acquire(t.Context(), 1, Wait(time.Minute)), ErrNotReplicated)
	c.inbox.forget(&another)
	require.Zero(t, c.inbox.expected())
}
