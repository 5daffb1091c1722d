package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// busyClient is a client with many holds and many waiters.
type busyClient struct {
	client  *latchkey.Client
	holds   []*latchkey.Hold
	waiters []<-chan acquisition
}

const crowd = 50

// newBusyClient acquires the holds with the client and starts waiters for a lock that another
// client holds.
func newBusyClient(t *testing.T, k kind, server *rig.Server, client *latchkey.Client) *busyClient {
	t.Helper()
	b := &busyClient{client: client}
	other := connect(t, server)
	mustLock(t, k.open(other, "wanted"))
	for i := range crowd {
		b.holds = append(b.holds, mustLock(t, k.open(b.client, fmt.Sprint("held ", i))))
		b.waiters = append(b.waiters, lockInBackground(context.Background(), k.open(b.client, "wanted")))
	}
	if k.messages {
		awaitWaiter(t, rig.NewAdmin(t, server), "wanted")
	}
	return b
}

// ended checks that every call ended and every hold learned of the end before Close returned.
func (b *busyClient) ended(t *testing.T) {
	t.Helper()
	for _, waiter := range b.waiters {
		got := rig.Await(t, soon, "a waiter ends", waiter)
		assert.ErrorIs(t, got.err, latchkey.ErrClosed)
		assert.Nil(t, got.hold)
	}
	for _, hold := range b.holds {
		ctx := hold.Context(context.Background())
		assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrClosed)
		assert.ErrorIs(t, hold.Err(), latchkey.ErrClosed)
	}
	_, err := b.client.NewLock("late").Lock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrClosed)
}

// Close with the server up ends waiters, releases holds and leaves nothing running.
func TestClose(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		server := rig.Fresh(t)
		admin := rig.NewAdmin(t, server)
		b := newBusyClient(t, k, server, connect(t, server))
		start := time.Now()
		require.NoError(t, b.client.Close(within(t, soon)))
		t.Logf("closed in %v", time.Since(start).Round(time.Millisecond))
		b.ended(t)
		assert.NoError(t, free(admin, "held")(), "the holds were released")
		assert.NoError(t, b.client.Close(t.Context()), "it may be called again")
	})
}

// Close leaves no goroutine and no connection of its own.
func TestCloseLeavesNothing(t *testing.T) {
	server := rig.Fresh(t)
	eachKind(t, func(t *testing.T, k kind) {
		before := goleak.IgnoreCurrent()
		client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
		require.NoError(t, err)
		hold := mustLock(t, k.open(client, k.name))
		other, closeOther, err := dial(server, server.Addr(), latchkey.Options{})
		require.NoError(t, err)
		waiter := lockInBackground(context.Background(), k.open(other, k.name))
		rest(50 * time.Millisecond)
		require.NoError(t, closeOther(within(t, soon)))
		assert.ErrorIs(t, rig.Await(t, soon, "the waiter", waiter).err, latchkey.ErrClosed)
		require.NoError(t, closeAll(within(t, soon)))
		assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		rig.Eventually(t, soon, "no goroutine is left", func() error { return leaked(server, before) })
	})
}

// With a server that is down or silent, Close returns within its budget, and every waiter and every
// hold learns of it.
func TestCloseWithoutAServer(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	rig.Need(t, rig.Process)
	faults := map[string]func(*rig.Server, *testing.T){
		"down":   func(s *rig.Server, t *testing.T) { s.Kill(t) },
		"silent": func(s *rig.Server, t *testing.T) { s.Pause(t) },
	}
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for what, fault := range faults {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				const budget = time.Second
				server := rig.Fresh(t)
				b := newBusyClient(t, k, server, connect(t, server, latchkey.Options{Lease: time.Hour, RetryBudget: time.Hour}))
				fault(server, t)
				start := time.Now()
				closed := make(chan error, 1)
				go func() { closed <- b.client.Close(within(t, budget)) }()
				err := rig.Await(t, soon, "Close", closed)
				t.Logf("Close returned %v after %v", err, time.Since(start).Round(time.Millisecond))
				assert.Error(t, err, "what could not be released is no success")
				b.ended(t)
			})
		}
	})
}

// Close does not close a borrowed client.
func TestCloseLeavesABorrowedClientOpen(t *testing.T) {
	raw := rig.Shared().Raw(t)
	client, err := latchkey.New(raw, latchkey.Options{})
	require.NoError(t, err)
	mustLock(t, client.NewLock(rig.Name(t)))
	require.NoError(t, client.Close(t.Context()))
	assert.NoError(t, raw.Do(t.Context(), raw.B().Ping().Build()).Error())
}
