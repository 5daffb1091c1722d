package line

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// atOnce is a call whose first attempt succeeds.
type atOnce struct{}

func (atOnce) Attempt(context.Context, int) (time.Duration, error) { return 0, nil }
func (atOnce) Pause(*Line, int, time.Duration) time.Duration       { return 0 }
func (atOnce) What() (keyspace.Kind, string)                       { return keyspace.KindNone, "job" }
func (atOnce) Recipient() Recipient                                { return nil }

// A call that ends before the pause for strangers is over asks at once: the lock may be free.
func TestWaiting_a_call_with_little_time_does_not_pause(t *testing.T) {
	all := NewTable()
	key := Key{Key: "job"}
	all.Use(key).openUntil = time.Now().Add(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := Waiting{Table: all}
	require.NoError(t, w.Wait(ctx, key, Only, atOnce{}, nil))
	require.NoError(t, ctx.Err())
}
