package tests

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A call that does not wait for the permits to be set learns at once that they are not, although a
// call of the same client waits for that.
func TestUnsetBesideACallThatAwaitsIt(t *testing.T) {
	t.Parallel()
	client, ctx := connect(t, rig.Shared()), within(t, soon)
	for kind, acquire := range map[latchkey.Kind]func(ctx context.Context, name string, await bool) error{
		latchkey.KindSemaphore: func(ctx context.Context, name string, await bool) error {
			if await {
				return client.NewSemaphore(name).Acquire(ctx, latchkey.AwaitSet())
			}
			return client.NewSemaphore(name).Acquire(ctx)
		},
		latchkey.KindPermit: func(ctx context.Context, name string, await bool) error {
			if await {
				return firstOf(client.NewPermitSemaphore(name).Acquire(ctx, latchkey.AwaitSet()))
			}
			return firstOf(client.NewPermitSemaphore(name).Acquire(ctx))
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			name := rig.Name(t)
			waiting, leave := context.WithCancel(ctx)
			left := make(chan error, 1)
			go func() { left <- acquire(waiting, name, true) }()
			awaitWaiting(t, client, kind, 1)
			require.ErrorIs(t, acquire(ctx, name, false), latchkey.ErrNotSet)
			leave()
			require.ErrorIs(t, rig.Await(t, soon, "the call", left), context.Canceled)
		})
	}
}
