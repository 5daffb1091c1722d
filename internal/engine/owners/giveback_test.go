package owners_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
)

// A lock that is granted to an owner for which nobody waits any more is given back, also if the
// channel of the client is subscribed only because its link still is.
func TestGiveBack_grant_that_nobody_expects(t *testing.T) {
	c := testredis.NewEngine(t)
	key, owner, ctx := testredis.UniqueName(t, c), c.ID+":7", context.Background()
	b := c.Rueidis.B()
	require.NoError(t, c.Rueidis.Do(ctx, b.Hset().Key(key).FieldValue().FieldValue(owner, "1").Build()).Error())
	require.NoError(t, c.Rueidis.Do(ctx, b.Pexpire().Key(key).Milliseconds(600_000).Build()).Error())
	c.Inbox.Unclaimed("latchkey:{"+c.ID+"}", "grant h "+owner+" 0@0 "+key)
	require.Eventually(t, func() bool {
		n, err := c.Rueidis.Do(ctx, b.Exists().Key(key).Build()).AsInt64()
		return err == nil && n == 0
	}, time.Minute, time.Millisecond)
}
