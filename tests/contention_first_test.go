package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// twoWaiters is a held lock with two waiters. Something happens to the first of them.
type twoWaiters struct {
	t      *testing.T
	kind   kind
	server *rig.Server
	name   string
	holder *latchkey.Hold
	tap    *rig.Tap // between the first waiter and the server
	second <-chan acquisition
}

var twoWaitersOptions = latchkey.Options{Lease: time.Minute, Tuning: latchkey.Tuning{StaleWaiterTimeout: crashLease}}

// newTwoWaiters acquires the lock and calls first, which starts the first waiter through the tap.
func newTwoWaiters(t *testing.T, k kind, options latchkey.Options, first func(o *twoWaiters)) *twoWaiters {
	t.Helper()
	o := &twoWaiters{t: t, kind: k, server: rig.Shared(), name: rig.Name(t)}
	o.tap = rig.NewTap(t, o.server)
	o.holder = mustLock(t, k.open(connect(t, o.server), o.name), latchkey.Lease(time.Minute))
	first(o)
	inLine(t, o.tap, o.name)
	behind := rig.NewTap(t, o.server)
	client := connectVia(t, o.server, behind.Addr(), options)
	o.second = lockInBackground(within(t, time.Minute), k.open(client, o.name))
	inLine(t, behind, o.name)
	return o
}

// inLine waits until a client behind the tap has tried to acquire the lock and was refused.
func inLine(t *testing.T, tap *rig.Tap, name string) {
	t.Helper()
	rig.Eventually(t, soon, "a waiter is refused", func() error {
		if len(tap.Executed(rig.Mentions(name))) == 0 {
			return assert.AnError
		}
		return nil
	})
}

// newFirstInProcess is newTwoWaiters with the first waiter in a process of its own.
func newFirstInProcess(t *testing.T, k kind) (o *twoWaiters, first *rig.ChildProcess) {
	t.Helper()
	o = newTwoWaiters(t, k, twoWaitersOptions, func(o *twoWaiters) {
		first = holderProcess.Start(o.t, o.kind.name, o.name, o.server.Ticket(), o.tap.Addr())
	})
	return o, first
}

// secondGoesOn releases the lock and returns the hold of the second waiter. It prints the time in
// between.
func (o *twoWaiters) secondGoesOn(after func()) *latchkey.Hold {
	o.t.Helper()
	mustUnlock(o.t, o.holder)
	released := time.Now()
	after()
	next := rig.Await(o.t, soon, "the second waiter", o.second)
	require.NoError(o.t, next.err)
	o.t.Logf("the second goes on %v after the release", next.at.Sub(released).Round(100*time.Microsecond))
	return next.hold
}

func nothing() {}

// If the first waiter is dead when its turn comes, the next one goes on at once, or after a stale
// period in a fair queue.
func TestFirstWaiter_killed_is_passed_over(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		o, child := newFirstInProcess(t, k)
		child.Kill()
		mustUnlock(t, o.secondGoesOn(nothing))
	}, messages)
}

// The first waiter is stopped when its turn comes, and continues later. It does not believe that it
// holds the lock, and gets it after the second.
func TestFirstWaiter_stopped_costs_a_short_lease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		o, child := newFirstInProcess(t, k)
		child.Stop(t)
		second := o.secondGoesOn(nothing)
		o.tap.Forget()
		child.Continue(t)
		inLine(t, o.tap, o.name) // it has tried, or released what it was granted
		require.NoError(t, second.Err())
		assert.Positive(t, countInRedis(t, rig.NewAdmin(t, o.server), o.name))
		mustUnlock(t, second)
		child.Line(t, soon, "held")
	}, messages)
}

// The first waiter is killed right after its turn has come, before it learns of this.
func TestFirstWaiter_killed_with_the_grant_costs_a_short_lease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		o, child := newFirstInProcess(t, k)
		child.Stop(t)
		mustUnlock(t, o.secondGoesOn(child.Kill))
	}, messages)
}

// If the first waiter leaves, or its client is closed, just when its turn comes, the next one goes
// on at once. A poll or a stale period would take an hour.
func TestFirstWaiter_leaving_costs_nothing(t *testing.T) {
	t.Parallel()
	leave := map[string]func(client *latchkey.Client, cancel func()){
		"gives up": func(_ *latchkey.Client, cancel func()) { cancel() },
		"closes":   func(client *latchkey.Client, _ func()) { _ = client.Close(context.Background()) },
	}
	for how, leaves := range leave {
		for when, before := range map[string]bool{"before": true, "after": false} {
			t.Run(how+" "+when+" the release", func(t *testing.T) {
				eachKind(t, func(t *testing.T, k kind) {
					t.Parallel()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var client *latchkey.Client
					var first <-chan acquisition
					o := newTwoWaiters(t, k, untold, func(o *twoWaiters) {
						client = connectVia(t, o.server, o.tap.Addr(), untold)
						first = lockInBackground(ctx, k.open(client, o.name))
					})
					away := func() { leaves(client, cancel) }
					if before {
						away()
						away = nothing
					}
					go func() { // it may get the lock before it leaves
						if got := <-first; got.err == nil {
							_ = got.hold.Unlock(context.Background())
						}
					}()
					mustUnlock(t, o.secondGoesOn(away))
				}, messages)
			})
		}
	}
}

// If the first waiter receives no messages, one of the two goes on within the poll ceiling, and
// then the other.
func TestFirstWaiter_without_messages_polls(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		var first <-chan acquisition
		o := newTwoWaiters(t, k, twoWaitersOptions, func(o *twoWaiters) {
			o.tap.DropMessages(true)
			client := connectVia(t, o.server, o.tap.Addr(), twoWaitersOptions)
			first = lockInBackground(within(t, time.Minute), k.open(client, o.name))
		})
		mustUnlock(t, o.holder)
		released, both := time.Now(), []<-chan acquisition{first, o.second}
		for range 2 {
			var next acquisition
			select {
			case next = <-both[0]:
				both[0] = nil
			case next = <-both[1]:
				both[1] = nil
			case <-time.After(soon):
				require.Fail(t, "nobody goes on")
			}
			require.NoError(t, next.err)
			t.Logf("the next goes on %v after the release", next.at.Sub(released).Round(100*time.Microsecond))
			mustUnlock(t, next.hold)
			released = time.Now()
		}
	}, messages)
}
