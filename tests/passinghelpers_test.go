package tests

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Helpers for holds that are passed on inside a client.

func passes(k kind) bool { return !k.queued && !k.fenced && k.name != spinKind.name }

// longTurn lets a client pass locks on for as long as possible.
var longTurn = latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn}}

// hotLock is a lock of a client that passes it on, with a tap on the client's commands.
type hotLock struct {
	client *latchkey.Client
	tap    *rig.Tap
	lock   anyLock
	name   string
}

func newHotLock(t *testing.T, k kind, options latchkey.Options) hotLock {
	t.Helper()
	tap, name := rig.NewTap(t, rig.Shared()), rig.Name(t)
	client := connectVia(t, rig.Shared(), tap.Addr(), options)
	return hotLock{client, tap, k.open(client, name), name}
}

// hold returns a hold that the server granted while another goroutine was in line, and the channel
// with the result of that goroutine, which next starts.
func (c hotLock) hold(t *testing.T, next func() <-chan acquisition, options ...latchkey.LockOption) (acquisition, <-chan acquisition) {
	t.Helper()
	before := mustLock(t, c.lock)
	_ = before.Share() // so that it is not passed on
	granted := lockInLine(within(t, soon), t, c.lock, options...)
	waiting := next()
	mustUnlock(t, before)
	first := rig.Await(t, soon, "the first hold", granted)
	require.NoError(t, first.err)
	c.tap.Forget()
	return first, waiting
}

// sent returns the commands that were sent for the lock since the last Forget of the tap.
func (c hotLock) sent() []rig.Command { return mentioning(c.tap, c.name) }

// pass returns a hold that was passed on and the hold that followed it. It releases holds with a
// waiter in line, until nothing is sent for a release. It calls during with a hold while that is
// held.
func (c hotLock) pass(t *testing.T, during func(first *latchkey.Hold)) (first, next *latchkey.Hold) {
	t.Helper()
	for {
		began := time.Now()
		holder, waiting := c.hold(t, func() <-chan acquisition { return lockInLine(within(t, soon), t, c.lock) })
		during(holder.hold)
		mustUnlock(t, holder.hold)
		follower := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, follower.err)
		commands := c.sent()
		if len(commands) == 0 {
			return holder.hold, follower.hold
		}
		mustUnlock(t, follower.hold)
		require.Greater(t, time.Since(began), longestTurn/2, "the turn lasts, and there was sent %v", commands)
	}
}

// losesNoHold checks a lock that is passed on to waiters whose contexts end at that moment. Each of
// them gets the hold or does not, and learns which.
func losesNoHold(t *testing.T, lock latchkey.Locker) {
	t.Helper()
	hold, had := mustLock(t, lock), 0
	tries := rig.Sized(500)
	for i := range tries {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := lockInLine(ctx, t, lock)
		go cancel()
		for range i % 8 {
			runtime.Gosched()
		}
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiting)
		if next.err != nil {
			require.ErrorIs(t, next.err, context.Canceled)
			hold = mustLock(t, lock)
			continue
		}
		hold, had = next.hold, had+1
		require.NoError(t, hold.Err())
	}
	mustUnlock(t, hold)
	t.Logf("%d of %d had it", had, tries)
}

// keepBusy lets n goroutines have a lock again and again until the test ends.
func keepBusy(t *testing.T, n int, lock latchkey.Locker) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = lock.Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
}

func untouched(*latchkey.Hold) {}

// lasts checks that a hold is valid for longer than least. A hold that another release granted has
// a short lease at first, which the client extends soon.
func lasts(hold *latchkey.Hold, least time.Duration) func() error {
	return func() error {
		if valid := hold.ValidFor(); valid <= least {
			return fmt.Errorf("it is valid for %v", valid)
		}
		return nil
	}
}

// servedInOrder releases a hold, and then each hold of those that wait in line, and checks that
// they come in their order.
func servedInOrder(t *testing.T, hold *latchkey.Hold, waiting []<-chan acquisition) {
	t.Helper()
	for i, next := range waiting {
		mustUnlock(t, hold)
		got := rig.Await(t, soon, "the next", next)
		require.NoError(t, got.err)
		hold = got.hold
		for _, later := range waiting[i+1:] {
			require.Empty(t, later)
		}
	}
	mustUnlock(t, hold)
}

// reenterAheadOfALine re-enters a hold while another goroutine is in line behind it, and releases
// both.
func reenterAheadOfALine(t *testing.T, lock latchkey.Locker, hold *latchkey.Hold) {
	t.Helper()
	waiting := lockInLine(within(t, soon), t, lock)
	inner, err := lock.Lock(hold.Context(within(t, soon)))
	require.NoError(t, err)
	mustUnlock(t, hold)
	require.NoError(t, inner.Err())
	require.Empty(t, waiting)
	mustUnlock(t, inner)
	next := rig.Await(t, soon, "the waiter", waiting)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// complete checks that exactly want members are held.
func complete(hold *latchkey.Hold, want int) error {
	n := 0
	for _, member := range hold.Members() {
		if member.Err() == nil {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d members are held", n)
	}
	return nil
}
