package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A context that ends between two steps of a call: the error does not say that nothing was sent.
func TestBreakBetween(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr(), patient)
	other := connectVia(t, server, tap.Addr(), patient)
	calls := map[string]func(ctx context.Context, name string) error{
		"MultiLock.TryLock": func(ctx context.Context, name string) error {
			return firstOf(latchkey.NewMultiLock(client.NewLock(name), other.NewLock(name+"2"), client.NewLock(name+"3")).TryLock(ctx))
		},
		"MultiLock.Lock": func(ctx context.Context, name string) error {
			return firstOf(latchkey.NewMultiLock(client.NewLock(name), other.NewLock(name+"2"), client.NewLock(name+"3")).Lock(ctx))
		},
		"RedLock.TryLock": func(ctx context.Context, name string) error {
			return firstOf(latchkey.NewRedLock(latchkey.RedLockOptions{}, client.NewLock(name)).TryLock(ctx))
		},
		"Campaign": func(ctx context.Context, name string) error {
			return firstOf(client.NewElection(name).Campaign(ctx, "me"))
		},
		"TryCampaign": func(ctx context.Context, name string) error {
			return firstOf(client.NewElection(name).TryCampaign(ctx, "me"))
		},
		"TrySetCount": func(ctx context.Context, name string) error {
			return firstOf(client.NewCountDownLatch(name).TrySetCount(ctx, 1))
		},
		"Latch.Delete": func(ctx context.Context, name string) error {
			return firstOf(client.NewCountDownLatch(name).Delete(ctx))
		},
		"Barrier.Do": func(ctx context.Context, name string) error {
			return client.NewBarrier(name, 1).Do(ctx, func(context.Context) error { return nil })
		},
		"Lock.Inspect": func(ctx context.Context, name string) error { return firstOf(client.NewLock(name).Inspect(ctx)) },
		"Lock":         func(ctx context.Context, name string) error { return firstOf(client.NewLock(name).Lock(ctx)) },
		"FairLock":     func(ctx context.Context, name string) error { return firstOf(client.NewFairLock(name).Lock(ctx)) },
		"Acquire": func(ctx context.Context, name string) error {
			return client.NewSemaphore(name).Acquire(ctx, 1, latchkey.AwaitSet())
		},
		"AcquireN": func(ctx context.Context, name string) error {
			return firstOf(client.NewFairSemaphore(name).AcquireN(ctx, 2, latchkey.AwaitSet()))
		},
		"RW": func(ctx context.Context, name string) error {
			return firstOf(client.NewRWLock(name).Reader().Lock(ctx))
		},
	}
	for what, call := range calls {
		t.Run(what, func(t *testing.T) {
			bad, ended := 0, 0
			var example string
			for i := range 1500 {
				name := fmt.Sprint(rig.Name(t), i)
				tap.Forget()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond+rand.N(1500*time.Microsecond))
				err := call(ctx, name)
				cancel()
				if err == nil || !errors.Is(err, context.DeadlineExceeded) {
					continue
				}
				ended++
				if errors.Is(err, latchkey.ErrUnavailable) || errors.Is(err, latchkey.ErrNotAcquired) || errors.Is(err, latchkey.ErrUnknownOutcome) || errors.Is(err, latchkey.ErrBroken) {
					continue
				}
				if len(mentioning(tap, name)) > 0 {
					bad++
					example = err.Error()
				}
			}
			t.Logf("%d ended during the call", ended)
			require.Zero(t, bad, "of %d errors say that nothing was sent: %s", ended, example)
		})
	}
}

// The names of kinds: a waiter of a fair semaphore that awaits its permits learns that the name is that of a latch.
func TestBreakKinds_of_waiters(t *testing.T) {
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
