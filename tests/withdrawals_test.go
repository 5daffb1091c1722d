package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Many goroutines of a client, some milliseconds from the server, give up and ask again, over and
// over. Those that have given up leave the queue as fast as they come.
func TestWithdrawalsKeepUp(t *testing.T) {
	t.Parallel()
	for what, open := range map[string]opensVia{"opened": openedVia, "borrowed": borrowedVia} {
		t.Run(what, func(t *testing.T) {
			const callers = 100
			server, name := rig.Shared(), rig.Name(t)
			lock := slowLink(t, server, 20*time.Millisecond, open).NewFairLock(name)
			near := connect(t, server).NewFairLock(name)
			mustLock(t, near)
			queued := func() int {
				waiters, err := near.Waiters(t.Context())
				require.NoError(t, err)
				return len(waiters)
			}
			stop := callAgain(t, locking(lock), callers, 300*time.Millisecond, 500*time.Millisecond, new(atomic.Int64))
			defer stop()
			rig.Eventually(t, soon, "most wait", func() error {
				if n := queued(); n < callers/2 {
					return fmt.Errorf("%d do", n)
				}
				return nil
			})
			longest, lateness := 0, rig.WatchLateness(nil)
			for began := time.Now(); time.Since(began) < sharesFor(t, 2*time.Second); rest(50 * time.Millisecond) {
				longest = max(longest, queued()) // a queue that only grows has thousands of entries then
			}
			late := lateness()
			t.Logf("up to %d of %d callers in the queue, on a machine that was %v late", longest, callers, late)
			assert.True(t, longest <= 2*callers || late > 20*time.Millisecond)
			stop() // on a machine that is much too busy, the queue grows as long as they come again
			rig.Eventually(t, 3*soon, "the queue is empty", func() error {
				if n := queued(); n > 0 {
					return fmt.Errorf("%d are in the queue", n)
				}
				return nil
			})
		})
	}
}

// Callers that soon give up get a lock or a permit at least half as often as callers that wait:
// what was granted to a caller that has given up is passed on at once.
func TestShortWaitsGetTheLock(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	for what, open := range map[string]func(c *latchkey.Client, name string) acquire{
		"FairLock": func(c *latchkey.Client, name string) acquire { return locking(c.NewFairLock(name)) },
		"Lock":     func(c *latchkey.Client, name string) acquire { return locking(c.NewLock(name)) },
		"Semaphore": func(c *latchkey.Client, name string) acquire {
			return permitsOf([]*latchkey.Client{c}, name)[0].acquire
		},
		"PermitSemaphore": func(c *latchkey.Client, name string) acquire {
			return permitsWithIDs([]*latchkey.Client{c}, name)[0].acquire
		},
		"FairSemaphore": fairPermitsOf,
	} {
		t.Run(what, func(t *testing.T) {
			client := slowLink(t, rig.Shared(), 10*time.Millisecond, openedVia)
			passes := func(least, most time.Duration) int64 {
				var passes atomic.Int64
				stop := callAgain(t, open(client, rig.Name(t)+least.String()), 200, least, most, &passes)
				defer stop()
				time.Sleep(5 * time.Second) // for so long they are counted
				return passes.Load()
			}
			assert.NoError(t, rig.InTime(t, func(int) error {
				patient, hasty := passes(time.Second, 2*time.Second), passes(300*time.Millisecond, 600*time.Millisecond)
				t.Logf("holds in 5 s: %d with waits of 1 to 2 s, %d with 300 to 600 ms", patient, hasty)
				if hasty < patient/2 {
					return fmt.Errorf("%d holds with short waits, %d with longer ones", hasty, patient)
				}
				return nil
			}))
		})
	}
}

func fairPermitsOf(c *latchkey.Client, name string) acquire {
	s := c.NewFairSemaphore(name)
	return permits(s.TrySetPermits, func(ctx context.Context) (taken, error) {
		return takenPermit(s.Acquire(ctx))
	})[0].acquire
}

// opensVia opens a client that reaches a server at another address.
type opensVia func(t *testing.T, server *rig.Server, addr string) *latchkey.Client

func openedVia(t *testing.T, server *rig.Server, addr string) *latchkey.Client {
	t.Helper()
	return connectVia(t, server, addr)
}

func borrowedVia(t *testing.T, server *rig.Server, addr string) *latchkey.Client {
	t.Helper()
	client, closeAll, err := borrow(server.Options(addr), latchkey.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = closeAll(within(t, soon)) })
	return client
}

// slowLink returns a client whose requests and replies take d each.
func slowLink(t *testing.T, server *rig.Server, d time.Duration, open opensVia) *latchkey.Client {
	t.Helper()
	link := rig.NewLink(t, server)
	client := open(t, server, link.Addr())
	mustUnlock(t, mustLock(t, client.NewLock(rig.Name(t)+"warm"))) // opens its connection
	link.DelayRequests(d / 2)
	link.DelayReplies(d / 2)
	return client
}

// callAgain has goroutines acquire and release, over and over, each time with a wait in that range.
func callAgain(t *testing.T, acquire acquire, callers int, least, most time.Duration, passes *atomic.Int64) (stop func()) {
	t.Helper()
	open, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for open.Err() == nil {
				ctx, cancel := context.WithTimeout(open, least+rand.N(most-least))
				got, err := acquire(ctx)
				cancel()
				if err == nil {
					passes.Add(1)
					_ = got.release(context.WithoutCancel(open))
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		end()
		all.Wait()
	})
}
