package tests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// borrowedSettings are the settings of rueidis clients made by the application. They change how a
// client retries, orders, pools and cancels.
func borrowedSettings() map[string]func(*rueidis.ClientOption) {
	return map[string]func(*rueidis.ClientOption){
		"defaults":          func(*rueidis.ClientOption) {},
		"no retry":          func(o *rueidis.ClientOption) { o.DisableRetry = true },
		"always pipelining": func(o *rueidis.ClientOption) { o.AlwaysPipelining = true },
		"no pipelining":     func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"four connections":  func(o *rueidis.ClientOption) { o.PipelineMultiplex = 2 },
		"RESP2":             func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true },
		"small ring":        func(o *rueidis.ClientOption) { o.RingScaleEachConn = 8 },
		"connection life":   func(o *rueidis.ClientOption) { o.ConnLifetime = 100 * time.Millisecond },
		"cache":             func(o *rueidis.ClientOption) { o.DisableCache = false },
	}
}

// eachBorrowed runs a test with two clients for each of the settings.
func eachBorrowed(t *testing.T, options latchkey.Options, test func(t *testing.T, tap *rig.Tap, a, b *latchkey.Client)) {
	t.Helper()
	for name, set := range borrowedSettings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "cache" {
				rig.Need(t, rig.Stats) // CLIENT TRACKING works only on a real server
			}
			server := rig.Shared()
			tap := rig.NewTap(t, server)
			test(t, tap, borrowedBy(t, server, tap, options, set), borrowedBy(t, server, tap, options, set))
		})
	}
}

func borrowedBy(t *testing.T, server *rig.Server, tap *rig.Tap, options latchkey.Options, set func(*rueidis.ClientOption)) *latchkey.Client {
	t.Helper()
	option := server.Options(tap.Addr())
	option.PipelineMultiplex, option.AlwaysPipelining = 0, false
	set(&option)
	client, closeAll, err := borrow(option, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		require.NoError(t, closeAll(ctx))
	})
	return client
}

// FM-58: no guarantee depends on the settings of a borrowed client.
func TestBorrowed_clients_exclude_wake_and_renew(t *testing.T) {
	t.Parallel()
	eachBorrowed(t, latchkey.Options{Lease: 5 * time.Second}, func(t *testing.T, _ *rig.Tap, a, b *latchkey.Client) {
		name := rig.Name(t)
		kept := mustLock(t, a.NewLock(name+" kept"))
		var inside, rounds atomic.Int32
		workers := rig.Goroutines(t)
		for i := range 8 {
			lock := []*latchkey.Client{a, b}[i%2].NewLock(name)
			workers.Go(func() {
				for range 10 {
					err := lock.Do(within(t, time.Minute), func(context.Context) error {
						defer inside.Add(-1)
						rounds.Add(1)
						if others := inside.Add(1) - 1; others > 0 {
							return fmt.Errorf("%d others inside", others)
						}
						return nil
					})
					assert.NoError(t, err)
				}
			})
		}
		workers.Wait()
		require.EqualValues(t, 80, rounds.Load())
		before := kept.ValidFor()
		rig.Eventually(t, soon, "the hold is renewed", func() error {
			left := kept.ValidFor()
			if left <= before {
				before = left
				return errors.New("not yet")
			}
			return nil
		})
		mustUnlock(t, kept)
	})
}

// A call obeys its context even if the borrowed client does not (FM-05, FM-24), and an acquisition
// in doubt is undone.
func TestBorrowed_clients_obey_contexts_and_undo(t *testing.T) {
	t.Parallel()
	patience := latchkey.Options{Lease: time.Hour, RetryBudget: time.Hour}
	eachBorrowed(t, patience, func(t *testing.T, tap *rig.Tap, a, b *latchkey.Client) {
		name := rig.Name(t)
		openConnections(t, a, b)
		// Hold every reply: rueidis retries a command and may get its reply in time if the
		// connection reaches the end of its lifetime.
		held := tap.HoldReplies(rig.Mentions(name))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		locked := lockInBackground(ctx, a.NewLock(name))
		rig.Await(t, soon, "the acquisition", held.Arrived)
		cancel()
		err := rig.Await(t, soon, "the end of the call", locked).err
		held.Release()
		requireUnavailable(t, err)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		mustUnlock(t, mustLock(t, b.NewLock(name))) // it is undone, long before the lease is over
	})
}

// openConnections opens the connections and loads the scripts.
func openConnections(t *testing.T, clients ...*latchkey.Client) {
	t.Helper()
	for _, client := range clients {
		mustUnlock(t, mustLock(t, client.NewLock(rig.Name(t)+":warm")))
	}
}
