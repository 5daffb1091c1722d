package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The names of kinds: a waiter of a fair semaphore that awaits its permits learns that the name is
// that of a latch.
func TestNumberKinds_of_waiters(t *testing.T) {
	t.Parallel()
	waits := map[latchkey.Kind]struct {
		number string // which one it waits for
		wait   func(ctx context.Context, c *latchkey.Client, name string) error
	}{
		latchkey.KindSemaphore: {"semaphore", func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewSemaphore(name).Acquire(ctx, latchkey.AwaitSet())
		}},
		latchkey.KindPermit: {"permit semaphore", func(ctx context.Context, c *latchkey.Client, name string) error {
			return firstOf(c.NewPermitSemaphore(name).Acquire(ctx, latchkey.AwaitSet()))
		}},
		latchkey.KindFairPermit: {"permit semaphore", func(ctx context.Context, c *latchkey.Client, name string) error {
			return firstOf(c.NewFairSemaphore(name).Acquire(ctx, latchkey.AwaitSet()))
		}},
		latchkey.KindLatch: {"latch", func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewCountDownLatch(name).Await(ctx, latchkey.AwaitSet())
		}},
	}
	for kind, w := range waits {
		for second, makeOne := range numbers {
			if second == w.number {
				continue
			}
			t.Run(string(kind)+", then "+second, func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				client, other := connect(t, server), connect(t, server)
				waiting := make(chan error, 6)
				for range cap(waiting) {
					go func() { waiting <- w.wait(within(t, time.Minute), client, name) }()
				}
				awaitWaiting(t, client, kind, cap(waiting))
				rig.Eventually(t, soon, "they have subscribed", hasSubscribed(rig.NewAdmin(t, server), name))
				makeOne(t, other, name)
				for range cap(waiting) {
					require.ErrorIs(t, rig.Await(t, soon+soon/2, "a waiter", waiting), latchkey.ErrWrongKind)
				}
			})
		}
	}
}
