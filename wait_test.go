package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/stretchr/testify/require"
)

// atOnce is a call whose first attempt succeeds.
type atOnce struct{}

func (atOnce) attempt(context.Context, int) (time.Duration, error) { return 0, nil }
func (atOnce) pause(*waitQueue, int, time.Duration) time.Duration  { return 0 }
func (atOnce) what() (keyspace.Kind, string)                       { return keyspace.KindNone, "job" }
func (atOnce) recipient() recipient                                { return nil }

// A call that ends before the pause for strangers is over asks at once: the lock may be free.
func TestWaiting_a_call_with_little_time_does_not_pause(t *testing.T) {
	all := newWaitQueues()
	key := lineKey{key: "job"}
	all.use(key).openUntil = time.Now().Add(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := waiting{queues: all}
	require.NoError(t, w.wait(ctx, key, onlyLine, atOnce{}, nil))
	require.NoError(t, ctx.Err())
}
