package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The names of kinds: a waiter of a fair semaphore that awaits its permits learns that the name is that of a latch.
func TestNumberKinds_of_waiters(t *testing.T) {
	t.Parallel()
	waits := map[string]func(ctx context.Context, c *latchkey.Client, name string) error{
		"semaphore": func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewSemaphore(name).Acquire(ctx, 1, latchkey.AwaitSet())
		},
		"permits": func(ctx context.Context, c *latchkey.Client, name string) error {
			return firstOf(c.NewPermitSemaphore(name).Acquire(ctx, latchkey.AwaitSet()))
		},
		"fair": func(ctx context.Context, c *latchkey.Client, name string) error {
			return firstOf(c.NewFairSemaphore(name).Acquire(ctx, latchkey.AwaitSet()))
		},
		"latch": func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewCountDownLatch(name).Await(ctx, latchkey.AwaitSet())
		},
	}
	for what, wait := range waits {
		for second, makeOne := range numbers {
			if second == what || second == "permit semaphore" && (what == "permits" || what == "fair") {
				continue
			}
			t.Run(what+", then "+second, func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				client, other := connect(t, server), connect(t, server)
				waiting := make(chan error, 6)
				for range 6 {
					go func() { waiting <- wait(within(t, time.Minute), client, name) }()
				}
				time.Sleep(500 * time.Millisecond)
				makeOne(t, other, name)
				for range 6 {
					require.ErrorIs(t, rig.Await(t, soon+soon/2, "a waiter", waiting), latchkey.ErrWrongKind)
				}
			})
		}
	}
}
