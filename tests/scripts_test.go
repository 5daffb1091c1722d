package tests

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/lua"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// rarelyCalled are scripts that are only called in circumstances that other tests make.
var rarelyCalled = map[string]string{
	"rw/renew_key":   "a slot migrates",
	"shared/op_void": "the outcome of an operation stays unknown",
	"shared/touch":   "replicas confirm",
}

// Each tap checks that scripts get as many keys and arguments as their headers have. Here every
// script is called, except those that rarely are.
func TestScriptsGetWhatTheirHeadersHave(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	quick := latchkey.Options{Lease: 9 * time.Second, Label: "a test"}
	client, other := connectVia(t, server, tap.Addr(), quick), connectVia(t, server, tap.Addr(), quick)
	for _, k := range append(slices.Clone(kinds), readKind) {
		hold := mustLock(t, k.open(client, name+k.name))
		require.NoError(t, hold.Extend(t.Context(), time.Hour))
		lockThrough(t, admin, client, other, k, hold)
	}
	reads, err := mustLock(t, client.NewRWLock(name).Writer()).Downgrade(t.Context())
	require.NoError(t, err)
	mustUnlock(t, reads)
	semaphoresThrough(t, client, name)
	latchThrough(t, client, name+"latch")
	electionThrough(t, admin, client, other, name+"election")
	completes(t, client.NewBarrier(name+"barrier", 3))
	require.NoError(t, client.NewBarrier(name+"barrier", 3).Reset(t.Context()))
	limiterThrough(t, client, name+"limiter")
	onceThrough(t, client, other, name+"once")
	permitsByID(t, client, other, name+"permits")
	waitsForLong(t, tap, client, other, name)

	for _, script := range lua.Names() {
		if rarelyCalled[script] == "" {
			assert.True(t, calls(tap, script), script)
		}
	}
}

// calls reports whether a client behind the tap has called a script.
func calls(tap *rig.Tap, script string) bool {
	return slices.ContainsFunc(tap.Commands(), func(c rig.Command) bool { return c.Script() == script })
}

// permitsByID calls what concerns single permits, and looks at them.
func permitsByID(t *testing.T, client, other *latchkey.Client, name string) {
	t.Helper()
	ctx, p := within(t, soon), client.NewPermitSemaphore(name)
	require.NoError(t, p.SetPermits(ctx, 1))
	permit, err := p.Acquire(ctx)
	require.NoError(t, err)
	for _, look := range []func() error{
		func() error { return firstOf(p.Holders(ctx)) },
		func() error { return firstOf(p.RemainingLease(ctx, permit.ID())) },
		func() error { return firstOf(other.Inspect(ctx, name)) },
		func() error { return firstOf(other.NewPermitSemaphore(name).Release(ctx, permit.ID())) },
		func() error { return firstOf(client.NewSemaphore(name+"plain").TrySetPermits(ctx, 1)) },
		func() error { return firstOf(statsOf(ctx, client.NewSemaphore(name+"plain"))) },
	} {
		require.NoError(t, look())
	}
}

// waitsForLong waits until parties, permits and waiters are kept alive, and then looks at the
// waiters.
func waitsForLong(t *testing.T, tap *rig.Tap, client, other *latchkey.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, soon))
	fair, permits := client.NewFairLock(name+"held"), client.NewFairSemaphore(name+"pool")
	hold := mustLock(t, fair)
	require.NoError(t, permits.SetPermits(ctx, 1))
	permit, err := permits.Acquire(ctx)
	require.NoError(t, err)
	party := arriveInBackground(ctx, client.NewBarrier(name+"two", 2))
	waiter := lockInBackground(ctx, fair)
	wants := make(chan error, 1)
	go func() { wants <- firstOf(permits.Acquire(ctx)) }()
	kept := []string{"fair/refresh", "permit/refresh", "permit/renew", "barrier/renew", "look/label_write"}
	for _, script := range kept {
		require.Eventually(t, func() bool { return calls(tap, script) }, soon, time.Millisecond, script)
	}
	_, err = other.Waiters(ctx, fair.Name())
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the party", party).err, context.Canceled)
	require.ErrorIs(t, rig.Await(t, soon, "the waiter", waiter).err, context.Canceled)
	require.ErrorIs(t, rig.Await(t, soon, "the other waiter", wants), context.Canceled)
	mustUnlock(t, hold)
	require.NoError(t, permit.Release(t.Context()))
	require.NoError(t, client.NewBarrier(name+"one", 1).Do(t.Context(), func(context.Context) error { return nil }))
}
