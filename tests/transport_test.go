package tests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// stall has so many callers give up on a server that stands still.
func stall(t *testing.T, server *rig.Server, client *latchkey.Client, callers int) {
	t.Helper()
	server.Pause(t)
	name := rig.Name(t)
	var leaving sync.WaitGroup
	for i := range callers {
		leaving.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := client.NewLock(fmt.Sprint(name, i)).TryLock(ctx)
			assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
		})
	}
	leaving.Wait()
	server.Resume(t)
}

// Callers that gave up on a short stall of the server, as many as may be in flight,
// do not lock out those who come after it.
func TestStallDoesNotOutlastTheServer(t *testing.T) {
	rig.Need(t, rig.Process)
	for name, open := range map[string]func(*testing.T, *rig.Server) (*latchkey.Client, int){
		"own": func(t *testing.T, s *rig.Server) (*latchkey.Client, int) {
			return connect(t, s), latchkey.DefaultMaxInFlight
		},
		"own, one in flight": func(t *testing.T, s *rig.Server) (*latchkey.Client, int) {
			return connect(t, s, latchkey.Options{MaxInFlight: 1}), 1
		},
		"borrowed": func(t *testing.T, s *rig.Server) (*latchkey.Client, int) {
			return borrowed(t, s, latchkey.Options{MaxInFlight: 64}), 64
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := rig.Fresh(t)
			client, callers := open(t, server)
			lock := client.NewLock(rig.Name(t))
			mustUnlock(t, mustLock(t, lock))
			for range 3 {
				stall(t, server, client, callers)
				start := time.Now()
				hold, err := lock.TryLock(t.Context())
				took := time.Since(start)
				require.NoError(t, err)
				require.Less(t, took, time.Second)
				mustUnlock(t, hold)
			}
		})
	}
}

// borrowed is a client of the library that uses a rueidis client of the test.
func borrowed(t *testing.T, server *rig.Server, options latchkey.Options) *latchkey.Client {
	t.Helper()
	client, closeAll, err := borrow(likeOurs(server.Options(server.Addr())), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeAll(within(t, soon))) })
	return client
}

// When the connection is broken and the server does not answer on a new one, the
// caller that comes first, for whom it is opened, obeys its context all the same.
func TestCancellationIsObeyedWhenTheConnectionIsBroken(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	lock := connectVia(t, server, tap.Addr()).NewLock(rig.Name(t))
	mustUnlock(t, mustLock(t, lock))
	server.Pause(t)
	defer server.Resume(t)
	opened := tap.Accepted()
	tap.Cut()
	rest(50 * time.Millisecond) // nothing tells that the client has noticed
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locked := lockInBackground(ctx, lock)
	rig.Eventually(t, soon, "a new connection", func() error {
		if tap.Accepted() == opened {
			return errors.New("none")
		}
		return nil
	})
	cancel()
	canceled := time.Now()
	got := rig.Await(t, soon, "Lock", locked)
	require.ErrorIs(t, got.err, context.Canceled)
	require.Less(t, got.at.Sub(canceled), leeway)
}
