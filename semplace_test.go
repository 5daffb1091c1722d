package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// An acquisition that too few replicas confirm is undone, and the client expects no messages for it any more.
func TestSemPlace_that_is_undone(t *testing.T) {
	c := newTestClient(t, Options{Replicas: Replicas{Min: 1, Timeout: 10 * time.Millisecond}})
	s := c.NewSemaphore(uniqueName(t, c))
	_, err := s.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	another := inbox.NewSlot(s.inside.Names.Key, "another", &semaphore.Place{Wake: func() {}})
	c.engine().Inbox.Listen(&another)
	require.ErrorIs(t, s.Acquire(t.Context(), 1, Wait(time.Minute)), ErrNotReplicated)
	c.engine().Inbox.Forget(&another)
	require.Zero(t, c.engine().Inbox.Expected())
}
