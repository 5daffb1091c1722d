package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// handedOver selects the kinds whose release hands the lock to the next client.
func handedOver(k kind) bool { return k.messages && !k.queued }

// inQueue returns how many owners are in the queue of a lock.
func inQueue(admin *rig.Admin, name string) int64 {
	return admin.Int("ZCARD", "latchkey_queue:{"+name+"}")
}

// queued waits until this many owners are in the queue.
func queued(t *testing.T, admin *rig.Admin, name string, want int64) {
	t.Helper()
	rig.Eventually(t, soon, "the queue", func() error {
		if n := inQueue(admin, name); n != want {
			return fmt.Errorf("%d in the queue, want %d", n, want)
		}
		return nil
	})
}

// Four clients want a lock all the time. Each acquisition costs two commands. For a mutex it costs
// three, because the client first tries the plain SET that every library uses.
func TestHandover_costs_two_commands(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		passes := max(rig.Sized(100), 25)
		server, name := rig.Fresh(t), "contended"
		admin := rig.NewAdmin(t, server)
		locks := make([]anyLock, 4)
		for i := range locks {
			locks[i] = k.open(connect(t, server), name)
		}
		inLoops(t, locks, 5) // subscribes
		monitor := admin.Watch()
		inLoops(t, locks, passes)
		count := 0
		for _, command := range monitor.Stop() {
			if strings.Contains(command, name) {
				count++
			}
		}
		each := float64(count) / float64(passes*len(locks))
		t.Logf("%.2f commands for each acquisition", each)
		limit := 2.2
		if !k.reentrant {
			limit = 3.2
		}
		assert.Less(t, each, limit)
	}, handedOver)
}

// inLoops acquires each lock this many times, in a goroutine of its own.
func inLoops(t *testing.T, locks []anyLock, times int) {
	t.Helper()
	all := rig.Goroutines(t)
	for _, lock := range locks {
		all.Go(func() {
			for range times {
				assert.NoError(t, lock.Do(within(t, time.Minute), func(context.Context) error {
					rest(time.Millisecond)
					return nil
				}))
			}
		})
	}
	all.Wait()
}

// Eight clients are served in the order in which they came.
func TestHandover_serves_in_order(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		first := mustLock(t, k.open(connect(t, server), name))
		served := make(chan int, 8)
		all := rig.Goroutines(t)
		for i := range 8 {
			lock := k.open(connect(t, server, neverStale), name)
			all.Go(func() {
				assert.NoError(t, lock.Do(within(t, time.Minute), func(context.Context) error {
					served <- i
					return nil
				}))
			})
			queued(t, admin, name, int64(i+1))
		}
		mustUnlock(t, first)
		all.Wait()
		for i := range 8 {
			assert.Equal(t, i, <-served)
		}
		rig.Eventually(t, soon, "all is free", free(admin, name))
	}, handedOver)
}

// Goroutines of three clients give up after a short time, often just when it is their turn. Patient
// waiters go on nevertheless, long before the short lease of an unwanted grant would end, and
// nothing is left.
func TestHandover_to_those_who_give_up(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		lasts := rig.Lasting(2 * time.Second)
		all := rig.Goroutines(t)
		var inside, turns atomic.Int64
		var longest [3]time.Duration
		critical := func(context.Context) error {
			assert.Equal(t, int64(1), inside.Add(1), "one holder")
			rest(rand.N(300 * time.Microsecond))
			turns.Add(1)
			inside.Add(-1)
			return nil
		}
		end := time.Now().Add(lasts)
		for c := range longest {
			lock := k.open(connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Minute}, Lease: time.Minute}), name)
			for range 3 {
				all.Go(func() {
					for time.Now().Before(end) {
						err := lock.Do(t.Context(), critical, latchkey.Wait(1+rand.N(3*time.Millisecond)))
						if !errors.Is(err, latchkey.ErrNotAcquired) && !errors.Is(err, latchkey.ErrUnavailable) {
							assert.NoError(t, err)
						}
					}
				})
			}
			all.Go(func() {
				for time.Now().Before(end) {
					start := time.Now()
					assert.NoError(t, lock.Do(within(t, time.Minute), critical))
					longest[c] = max(longest[c], time.Since(start))
				}
			})
		}
		all.Wait()
		t.Logf("%d turns, the longest waits %v", turns.Load(), longest)
		for _, each := range longest {
			assert.Less(t, each, soon)
		}
		rig.Eventually(t, soon, "all is free", free(rig.NewAdmin(t, server), name))
	}, handedOver)
}

// ForceUnlock hands the lock to a waiter.
func TestHandover_by_force(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin, client := rig.NewAdmin(t, server), connect(t, server)
		lock := k.open(client, name)
		mustLock(t, lock)
		waiter := lockInBackground(within(t, time.Minute), k.open(connect(t, server, seldom()), name))
		queued(t, admin, name, 1)
		held, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}, handedOver)
}

// A client that closes removes its owners from the queue, even if goroutines wait behind them.
func TestHandover_close_leaves_the_queue(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin, client := rig.NewAdmin(t, server), connect(t, server)
		hold := mustLock(t, k.open(connect(t, server), name))
		var waiting [3]<-chan acquisition
		for i := range waiting {
			waiting[i] = lockInBackground(within(t, time.Minute), k.open(client, name))
		}
		queued(t, admin, name, 1)
		require.NoError(t, client.Close(within(t, soon)))
		for _, each := range waiting {
			require.ErrorIs(t, rig.Await(t, soon, "the end of a wait", each).err, latchkey.ErrClosed)
		}
		assert.Zero(t, inQueue(admin, name))
		mustUnlock(t, hold)
		require.NoError(t, free(admin, name)())
	}, handedOver)
}

// A lock with a fixed lease that is longer than that of a grant gets all of it, even if it is
// extended by less.
func TestHandover_with_a_fixed_lease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		hold := mustLock(t, k.open(connect(t, server), name))
		options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Second}}
		lock := k.open(connect(t, server, options), name)
		waiter := lockInBackground(within(t, time.Minute), lock, latchkey.Lease(time.Minute))
		queued(t, admin, name, 1)
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		require.NoError(t, next.hold.Extend(t.Context(), 100*time.Millisecond))
		rest(options.Tuning.StaleWaiterTimeout + 200*time.Millisecond) // longer than the lease of the grant
		require.NoError(t, next.hold.Err())
		assert.Greater(t, next.hold.ValidFor(), soon)
		assert.Greater(t, admin.PTTL(name), soon)
		mustUnlock(t, next.hold)
	}, handedOver)
}
