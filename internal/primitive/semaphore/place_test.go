package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// An acquisition that too few replicas confirm is undone, and the client expects no messages for it
// any more.
func TestSemPlace_that_is_undone(t *testing.T) {
	c := testredis.NewEngine(t, func(s *testredis.Settings) {
		s.Confirmation = func(id string, waits int) *transport.Replication {
			return &transport.Replication{Min: 1, Timeout: 10 * time.Millisecond, ID: id, Touch: script.Touch, Waits: waits}
		}
	})
	s := semaphore.New(c, testredis.UniqueName(t, c))
	_, err := s.TrySet(t.Context(), 1, nil)
	require.NoError(t, err)
	another := inbox.NewSlot(s.Names.Key, "another", &semaphore.Place{Wake: func() {}})
	c.Inbox.Listen(&another)
	wait := []request.Setting{{Kind: request.Wait, D: time.Minute}}
	require.ErrorIs(t, s.Acquire(t.Context(), "acquire", true, 1, wait), fault.ErrNotReplicated)
	c.Inbox.Forget(&another)
	require.Zero(t, c.Inbox.Expected())
}
