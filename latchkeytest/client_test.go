package latchkeytest_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestClientsExcludeEachOther(t *testing.T) {
	const clients, rounds = 3, 20
	server := latchkeytest.NewServer(t)
	var inside, turns atomic.Int64

	var wg sync.WaitGroup
	t.Cleanup(wg.Wait) // also if a later client cannot be made
	for range clients {
		orders := server.Client().NewLock("orders")
		wg.Go(func() {
			for range rounds {
				hold, err := orders.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				assert.EqualValues(t, 1, inside.Add(1))
				turns.Add(1)
				inside.Add(-1)
				assert.NoError(t, hold.Unlock(t.Context()))
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, clients*rounds, turns.Load())
}

func TestServersShareNothing(t *testing.T) {
	for range 2 {
		_, err := latchkeytest.NewServer(t).Client().NewLock("orders").TryLock(t.Context())
		require.NoError(t, err)
	}
}

func TestClientIsClosedWithItsTest(t *testing.T) {
	var client *latchkey.Client
	t.Run("inner", func(t *testing.T) {
		client = latchkeytest.NewServer(t).Client()
	})
	_, err := client.NewLock("orders").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

func TestClientMayBeClosedEarlier(t *testing.T) {
	server := latchkeytest.NewServer(t)
	closeClient(t, server.Client())
	_, err := server.Client().NewLock("orders").TryLock(t.Context())
	require.NoError(t, err)
}

func TestCrashLeavesTheLockToItsLease(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	doomed := server.Client(latchkey.Options{RetryBudget: 300 * time.Millisecond})
	heir := server.Client().NewLock("orders")
	hold, err := doomed.NewLock("orders").Lock(t.Context())
	require.NoError(t, err)

	server.Crash(doomed)
	require.Error(t, hold.Unlock(t.Context()), "the dead do not unlock")
	_, err = heir.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)

	server.Advance(30 * time.Second)
	_, err = heir.TryLock(t.Context())
	require.NoError(t, err)
}

func TestCrashKnowsItsOwnClientsOnly(t *testing.T) {
	server, err := latchkeytest.Start()
	require.NoError(t, err)
	defer server.Close()
	stranger := latchkeytest.NewServer(t).Client()
	assert.Panics(t, func() { server.Crash(stranger) })
}
