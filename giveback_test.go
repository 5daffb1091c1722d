package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock that is granted to an owner for which nobody waits any more is given back, also if the channel of the client is
// subscribed only because its link still is.
func TestGiveBack_grant_that_nobody_expects(t *testing.T) {
	c := newTestClient(t, Options{})
	key, owner, ctx := uniqueName(t, c), c.engine().ID+":7", context.Background()
	b := c.engine().Rueidis.B()
	require.NoError(t, c.engine().Rueidis.Do(ctx, b.Hset().Key(key).FieldValue().FieldValue(owner, "1").Build()).Error())
	require.NoError(t, c.engine().Rueidis.Do(ctx, b.Pexpire().Key(key).Milliseconds(600_000).Build()).Error())
	c.engine().Inbox.Unclaimed("latchkey:{"+c.engine().ID+"}", "grant h "+owner+" 0@0 "+key)
	require.Eventually(t, func() bool {
		n, err := c.engine().Rueidis.Do(ctx, b.Exists().Key(key).Build()).AsInt64()
		return err == nil && n == 0
	}, time.Minute, time.Millisecond)
}
