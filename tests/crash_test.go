package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const crashLease = time.Second

// holderProcess holds a lock and reports when it loses it. Its arguments: kind of lock, name,
// server, and optionally the address of a proxy and its lease.
var holderProcess = rig.Child("holder", func(ctx context.Context, args []string) error {
	k, err := kindNamed(args[0])
	if err != nil {
		return err
	}
	options := latchkey.Options{Lease: crashLease, Tuning: latchkey.Tuning{StaleWaiterTimeout: crashLease}}
	if len(args) > 4 {
		options.Lease, err = time.ParseDuration(args[4])
	}
	client, closeAll, err2 := dialTicket(args[2], append(args, "")[3], options)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	hold, err := k.open(client, args[1]).Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Println("held")
	<-hold.Lost()
	fmt.Println("lost", errors.Is(hold.Err(), latchkey.ErrLost), hold.ValidFor())
	fmt.Println("unlock", errors.Is(hold.Unlock(ctx), latchkey.ErrNotHeld))
	return closeAll(ctx)
})

// A holder that is killed frees its lock within one lease.
func TestKilledHolderFreesTheLock(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		const lease = 3 * time.Second
		child := holderProcess.Start(t, k.name, name, server.Ticket(), "", lease.String())
		child.Line(t, soon, "held")
		waiter := lockInBackground(within(t, 2*soon), k.open(connect(t, server), name))
		rest(rand.N(lease / 2)) // it may be renewed during this time, so the kill comes at any point of the lease
		require.Empty(t, waiter)

		child.Kill()
		killed := time.Now()
		next := rig.Await(t, soon, "the lock", waiter)
		require.NoError(t, next.err)
		t.Logf("free %v after the kill, lease %v", next.at.Sub(killed).Round(time.Millisecond), lease)
		mustUnlock(t, next.hold)
		assert.NoError(t, free(rig.NewAdmin(t, server), name)())
	})
}

// A holder that is stopped for longer than its lease and continues learns at once that it lost the
// lock, and does not affect the new holder.
func TestStoppedHolderKnowsThatItLost(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		child := holderProcess.Start(t, k.name, name, server.Ticket())
		child.Line(t, soon, "held")
		child.Stop(t)
		next := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(time.Hour))
		child.Continue(t)

		assert.Equal(t, "true 0s", child.Line(t, soon, "lost"))
		assert.Equal(t, "true", child.Line(t, soon, "unlock"))
		child.Wait(t, soon)
		assert.NoError(t, next.Err())
		assert.Greater(t, rig.NewAdmin(t, server).PTTL(name), 30*time.Minute)
		mustUnlock(t, next)
	})
}

// A waiter that is canceled leaves no key, no subscription and no goroutine.
func TestCancelledWaiterLeavesNothing(t *testing.T) {
	server := singleServer(t)
	admin := rig.NewAdmin(t, server)
	client := connect(t, server)
	// What was sent before the cancellation is undone in the background, again and again for one
	// lease, so the lease is short.
	attempted := make(chan string, 10_000)
	impatient := connect(t, server, latchkey.Options{Lease: 500 * time.Millisecond, Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventAttempt {
			attempted <- e.Name
		}
	}})
	var holders []*latchkey.Hold
	names := map[string]kind{}
	for _, k := range kinds {
		name := rig.Name(t)
		names[name] = k
		holders = append(holders, mustLock(t, k.open(client, name)))
	}
	before := goleak.IgnoreCurrent()

	ctx, cancel := context.WithCancel(t.Context())
	var waiters []<-chan acquisition
	for name, k := range names {
		for range 50 {
			waiters = append(waiters, lockInBackground(ctx, k.open(impatient, name)))
		}
	}
	// The waiter in front tries to acquire, and once more after it has subscribed.
	attempts := map[string]int{}
	for name, k := range names {
		for k.messages && attempts[name] < 2 {
			attempts[rig.Await(t, soon, "an attempt", attempted)]++
		}
	}
	cancel()
	for _, waiter := range waiters {
		got := rig.Await(t, soon, "a canceled waiter", waiter)
		assert.ErrorIs(t, got.err, context.Canceled)
	}
	for _, holder := range holders { // this may grant a lock to a canceled waiter, which gives it back
		mustUnlock(t, holder)
	}
	if !testing.Short() { // the goroutine that polls for strangers lingers for 5 s
		rig.Eventually(t, soon, "no goroutine is left", func() error { return leaked(server, before) })
	}
	for name, k := range names {
		rig.Eventually(t, soon, "no key and no subscription of a "+k.name+" is left", func() error {
			return errors.Join(free(admin, name)(), subscribed(admin, name))
		})
	}
}

// singleServer returns a server without other nodes. A client might connect to those at any time,
// and many clients need a while for it.
func singleServer(t *testing.T) *rig.Server {
	t.Helper()
	if rig.Shared().Clustered() {
		return rig.Fresh(t)
	}
	return rig.Shared()
}

// leaked reports goroutines that were not there before. It reports nothing for the embedded server,
// which has its own goroutines for each connection.
func leaked(server *rig.Server, before goleak.Option) error {
	if server.Embedded() {
		return nil
	}
	// A client queries its Sentinels every few seconds.
	asking := goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*sentinelClient).listWatch.func2")
	return goleak.Find(before, asking)
}

// subscribed is an error if anybody listens to a channel of the name.
func subscribed(admin *rig.Admin, name string) error {
	if channels := admin.Channels(name); len(channels) > 0 {
		return fmt.Errorf("subscribed to %v", channels)
	}
	return nil
}

// Acquisitions are canceled at random instants, around the time that they take. None leaves a hold
// behind.
func TestCancelledAtRandomInstants(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		const lanes = 8
		runs := rig.Sized(800)
		server, name := rig.Shared(), rig.Name(t)
		var locks [lanes]anyLock
		for lane := range locks {
			locks[lane] = k.open(connect(t, server), fmt.Sprintf("%s lane %d", name, lane))
		}
		var canceled sync.Map
		var all sync.WaitGroup
		for lane, lock := range locks {
			all.Go(func() { canceled.Store(lane, cancelOften(t, lock, runs/lanes)) })
		}
		all.Wait()
		total := 0
		canceled.Range(func(_, n any) bool { total += n.(int); return true })
		t.Logf("%d of %d were canceled", total, runs)
		assert.Positive(t, total, "the test canceled nothing")
		rig.Eventually(t, soon, "nothing is held", free(rig.NewAdmin(t, server), name))
	})
}

// cancelOften acquires and releases, and returns how often it was canceled.
func cancelOften(t *testing.T, lock anyLock, runs int) (canceled int) {
	t.Helper()
	for range runs {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(rand.N(500*time.Microsecond), cancel)
		hold, err := lock.TryLock(ctx)
		timer.Stop()
		cancel()
		switch {
		case err == nil:
			assert.NoError(t, hold.Unlock(ctx), "although the context has ended")
		case !errors.Is(err, context.Canceled):
			requireBusy(t, err) // the previous acquisition has not been undone yet
		case errors.Is(err, latchkey.ErrNotAcquired):
			requireBusy(t, err) // a member of a group was busy, and the reply of another did not arrive
			canceled++
		default:
			if errors.Is(err, latchkey.ErrUnavailable) { // otherwise it ended before the call
				requireUnavailable(t, err)
			}
			canceled++
		}
	}
	return canceled
}

// Unlock works although its context has ended.
func TestUnlockOnADeadContext(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		hold := mustLock(t, k.open(connect(t, server), name))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, hold.Unlock(ctx))
		assert.NoError(t, free(rig.NewAdmin(t, server), name)())
	})
}

// Fifty callers with a second each use a silent link. All return in time, and nothing of theirs is
// left when the link works again.
func TestCallersReturnFromASilentLink(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		const callers, budget = 50, time.Second
		link := rig.NewLink(t, rig.Shared())
		name := rig.Name(t)
		client := connectVia(t, rig.Shared(), link.Addr(), persistent)
		mustUnlock(t, mustLock(t, k.open(client, name)))
		link.Silence()

		slowest := slowestOf(callers, func(i int) {
			ctx, cancel := context.WithTimeout(t.Context(), budget)
			defer cancel()
			_, err := k.open(client, fmt.Sprintf("%s %d", name, i)).Lock(ctx)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			requireUnavailable(t, err)
		})
		t.Logf("the slowest of %d callers with %v came back after %v", callers, budget, slowest.Round(time.Millisecond))
		tookAbout(t, budget, slowest)
		link.Heal()
		rig.Eventually(t, soon, "nothing is held", free(rig.NewAdmin(t, rig.Shared()), name))
	})
}

// slowestOf runs n calls at once and returns how long the slowest took.
func slowestOf(n int, call func(i int)) time.Duration {
	var mu sync.Mutex
	var slowest time.Duration
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			start := time.Now()
			call(i)
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(start))
		})
	}
	all.Wait()
	return slowest
}

// Replies arrive later and later, up to well after the lease. The caller either gets a lock with
// validity left, or no lock remains.
func TestRepliesDelayedAroundTheLease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 400 * time.Millisecond
		for _, part := range []float64{0.5, 0.9, 1, 1.5} {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				link, admin := rig.NewLink(t, server), rig.NewAdmin(t, server)
				lock := k.open(connectVia(t, server, link.Addr()), name)
				_, err := isLocked(t.Context(), lock) // opens the connection
				require.NoError(t, err)
				link.DelayReplies(time.Duration(part * float64(lease)))

				hold, err := lock.TryLock(within(t, soon), latchkey.Lease(lease))
				if err == nil {
					assert.Less(t, part, 1.0)
					if exists := admin.Exists(name); hold.ValidFor() > 0 {
						assert.True(t, exists, "it is valid")
					}
					return
				}
				requireUnavailable(t, err)
				assert.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
				rig.Eventually(t, soon, "the undo", free(admin, name))
			})
		}
	})
}

// The reply arrives just when the wait is over: the call succeeds, or it fails and leaves no key.
func TestReplyAtTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const wait = 100 * time.Millisecond
		server, name := rig.Shared(), rig.Name(t)
		link, admin := rig.NewLink(t, server), rig.NewAdmin(t, server)
		client := connectVia(t, server, link.Addr())
		_, err := isLocked(t.Context(), k.open(client, name))
		require.NoError(t, err)
		link.DelayReplies(wait)
		for i := range 3 {
			each := fmt.Sprintf("%s %d", name, i)
			hold, err := k.open(client, each).Lock(within(t, soon), latchkey.Wait(wait))
			if err == nil {
				mustUnlock(t, hold)
			} else {
				requireUnavailable(t, err)
				assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context goes on")
			}
			rig.Eventually(t, soon, "no key is left", free(admin, each))
		}
	})
}
