package tests

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// nowhere is an address at which nobody listens.
const nowhere = "127.0.0.1:1"

// lazily returns a client that is made without a server, and a function that makes the server
// reachable.
func lazily(t *testing.T, server *rig.Server, options latchkey.Options) (client *latchkey.Client, comesUp func()) {
	t.Helper()
	if server.Clustered() || server.Embedded() {
		t.Skip("single servers and Sentinel only")
	}
	var up atomic.Bool
	options.LazyConnect = true
	options.Tuning.AddressMapper = func(address string) string {
		if up.Load() {
			return address
		}
		return nowhere
	}
	client, err := latchkey.Connect(t.Context(), server.URL(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(within(t, soon))) })
	return client, func() { up.Store(true) }
}

// notSent checks the error of a call that finds no server. On a busy machine the time of the call
// may end while the client is being opened. Then the outcome counts as unknown, and the call is
// repeated.
func notSent(t *testing.T, call func() error) {
	t.Helper()
	err := call()
	for range 4 {
		if errors.Is(err, latchkey.ErrUnknownOutcome) {
			err = call()
		}
	}
	assert.ErrorIs(t, err, latchkey.ErrUnavailable)
	assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
	if !strings.Contains(err.Error(), "there is no connection") { // not yet, on a busy machine
		var network *net.OpError
		assert.ErrorAs(t, err, &network, "the network error is in the chain")
		assert.ErrorContains(t, err, nowhere)
	}
}

// A client made while the server is down fails like one that has lost its server. When the server
// is up, the client works with the same locks.
func TestLazyConnect(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		client, comesUp := lazily(t, rig.Shared(), brief)
		lock := k.open(client, rig.Name(t))
		notSent(t, func() error {
			_, err := lock.TryLock(within(t, soon))
			assert.NotErrorIs(t, err, context.DeadlineExceeded, "it ends with the retry budget")
			return err
		})
		notSent(t, func() error {
			_, err := isLocked(t.Context(), lock)
			return err
		})

		waiter := lockInBackground(within(t, soon), lock)
		comesUp()
		got := rig.Await(t, soon, "the waiter that came before the server", waiter)
		require.NoError(t, got.err)
		unlockInTheEnd(t, got.hold)
		unlockInTheEnd(t, mustLock(t, lock))
	})
}

// unlockInTheEnd releases a hold whose client has a short retry budget, which a busy machine may
// use up.
func unlockInTheEnd(t *testing.T, hold *latchkey.Hold) {
	t.Helper()
	rig.Eventually(t, soon, "the release", func() error { return hold.Unlock(within(t, soon)) })
}

// Waiters of a client that connected late are woken, and its holds are renewed.
func TestLazyConnect_wakes_and_renews(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	renewed, observe := renewalsSeen()
	client, comesUp := lazily(t, server, latchkey.Options{Lease: 5 * time.Second, RetryBudget: time.Second, Observer: observe})
	notSent(t, func() error {
		_, err := client.NewLock(name).TryLock(t.Context(), latchkey.Lease(time.Minute))
		return err
	})
	comesUp()
	holder := mustLock(t, connect(t, server).NewLock(name))
	waiter := lockInBackground(within(t, soon), client.NewLock(name))
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	mustUnlock(t, holder)
	got := rig.Await(t, soon, "the waiter", waiter)
	require.NoError(t, got.err)
	rig.Await(t, soon, "a renewal", renewed)
	require.NoError(t, got.hold.Err())
	unlockInTheEnd(t, got.hold)
}

// A client connects to a server process that is started after it.
func TestLazyConnect_before_the_server_starts(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process, rig.Single)
	server := rig.Fresh(t)
	server.Kill(t)
	options := brief
	options.LazyConnect = true
	client, err := latchkey.Connect(t.Context(), server.URL(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(within(t, soon))) })
	lock := client.NewFencedLock("late")
	_, err = lock.TryLock(t.Context())
	require.Error(t, err)
	server.Restart(t)
	unlockInTheEnd(t, mustLock(t, lock))
}

// Making a client and its locks dials nothing. A client that was never used closes at once.
func TestLazyConnect_dials_at_the_first_use(t *testing.T) {
	rig.Need(t, rig.Single)
	var dials atomic.Int32
	client, err := latchkey.Open(t.Context(), rueidis.ClientOption{
		InitAddress: []string{rig.Shared().Addr()},
		DialCtxFn: func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return dialer.DialContext(ctx, "tcp", address)
		},
	}, latchkey.Options{LazyConnect: true})
	require.NoError(t, err)
	lock := client.NewLock(rig.Name(t))
	require.Zero(t, dials.Load())
	mustUnlock(t, mustLock(t, lock))
	require.EqualValues(t, 1, dials.Load())
	require.NoError(t, client.Close(within(t, soon)))

	unused, err := latchkey.Connect(t.Context(), "redis://"+nowhere, latchkey.Options{LazyConnect: true})
	require.NoError(t, err)
	require.NoError(t, unused.Close(within(t, soon)))
	_, err = unused.NewLock("x").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

// A server that accepts connections and does not answer delays no call beyond its retry budget,
// however many calls there are.
func TestLazyConnect_to_a_silent_server(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server := rig.Shared()
	link := rig.NewLink(t, server)
	link.Silence()
	options := brief
	options.LazyConnect = true
	client, err := latchkey.Connect(t.Context(), server.URLVia(link.Addr()), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(within(t, soon))) })
	lock, start := client.NewLock(rig.Name(t)), time.Now()
	eachName(t, 100, 100, func(string) {
		_, err := lock.TryLock(context.Background()) // for which the client of the library starts no goroutine
		assert.ErrorIs(t, err, latchkey.ErrUnavailable)
		assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
	})
	assert.Less(t, time.Since(start), soon, "they do not wait one after the other")
	link.Heal()
	unlockInTheEnd(t, mustLock(t, lock))
}
