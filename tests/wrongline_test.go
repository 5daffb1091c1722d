package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// holders hold a name as an object of each kind.
var holders = map[string]func(ctx context.Context, c *latchkey.Client, name string) error{
	"mutex": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewMutex(name).Lock(ctx))
	},
	"lock": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewLock(name).Lock(ctx))
	},
	"fair lock": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewFairLock(name).Lock(ctx))
	},
	"reader": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewRWLock(name).Reader().Lock(ctx))
	},
	"writer": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewRWLock(name).Writer().Lock(ctx))
	},
	"permit": func(ctx context.Context, c *latchkey.Client, name string) error {
		if err := firstOf(c.NewPermitSemaphore(name).TrySetPermits(ctx, 1)); err != nil {
			return err
		}
		return firstOf(c.NewPermitSemaphore(name).Acquire(ctx))
	},
	"semaphore": func(ctx context.Context, c *latchkey.Client, name string) error {
		if err := firstOf(c.NewSemaphore(name).TrySetPermits(ctx, 1)); err != nil {
			return err
		}
		return c.NewSemaphore(name).Acquire(ctx, 1)
	},
	"latch": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewCountDownLatch(name).TrySetCount(ctx, 1))
	},
	"barrier": func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewBarrier(name, 2).Await(ctx, latchkey.Wait(2*time.Second)))
	},
}

// sameKind has the groups of holders that may use one name.
var sameKind = map[string]string{"mutex": "string", "lock": "hash", "fair lock": "hash", "reader": "rw", "writer": "rw",
	"permit": "permits", "semaphore": "semaphore", "latch": "latch", "barrier": "barrier"}

// While a client holds a name as one kind of object, a call of the same client that wants it as another kind gets
// ErrWrongKind at once, and does not wait for that hold.
func TestWrongKindOfTheOwnHold(t *testing.T) {
	t.Parallel()
	for held, hold := range holders {
		for wanted, want := range holders {
			if sameKind[held] == sameKind[wanted] {
				continue
			}
			t.Run(held+", then "+wanted, func(t *testing.T) {
				t.Parallel()
				client, name, ctx := connect(t, rig.Shared()), rig.Name(t), within(t, soon)
				if err := hold(ctx, client, name); held != "barrier" {
					require.NoError(t, err)
				}
				require.ErrorIs(t, want(ctx, client, name), latchkey.ErrWrongKind)
			})
		}
	}
}

// A call that does not wait for the permits to be set learns at once that they are not, although a call of the same
// client waits for that.
func TestUnsetBesideACallThatAwaitsIt(t *testing.T) {
	t.Parallel()
	client, ctx := connect(t, rig.Shared()), within(t, soon)
	for kind, acquire := range map[string]func(ctx context.Context, name string, await bool) error{
		"semaphore": func(ctx context.Context, name string, await bool) error {
			if await {
				return client.NewSemaphore(name).Acquire(ctx, 1, latchkey.AwaitSet())
			}
			return client.NewSemaphore(name).Acquire(ctx, 1)
		},
		"permits": func(ctx context.Context, name string, await bool) error {
			if await {
				return firstOf(client.NewPermitSemaphore(name).Acquire(ctx, latchkey.AwaitSet()))
			}
			return firstOf(client.NewPermitSemaphore(name).Acquire(ctx))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			name := rig.Name(t)
			waiting, leave := context.WithCancel(ctx)
			left := make(chan error, 1)
			go func() { left <- acquire(waiting, name, true) }()
			rig.Eventually(t, soon, "it waits", func() error {
				if len(client.Waiting()) == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			require.ErrorIs(t, acquire(ctx, name, false), latchkey.ErrNotSet)
			leave()
			require.ErrorIs(t, rig.Await(t, soon, "the call", left), context.Canceled)
		})
	}
}
