package tests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// connectMute connects as a user that may not subscribe.
func connectMute(t *testing.T, server *rig.Server, options latchkey.Options) *latchkey.Client {
	t.Helper()
	rig.NewAdmin(t, server).Do("ACL", "SETUSER", "mute", "on", "nopass", "~*", "&*", "+@all", "-subscribe", "-ssubscribe")
	option := server.Options(server.Addr())
	option.Username, option.Password = "mute", "any"
	client, closeAll, err := borrow(option, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, closeAll(within(t, soon))) })
	return client
}

// poller returns how a client acquires it that polls: one that receives no messages, or has a spin
// lock.
func (k passedKind) poller(t *testing.T, server *rig.Server, name string, options latchkey.Options) acquire {
	t.Helper()
	if k.spins {
		return k.waits(connect(t, server, options), name)
	}
	return k.waits(connectMute(t, server, options), name)
}

// listener returns how it is acquired by one that receives messages.
func (k passedKind) listener() acquires {
	if k.spins {
		return k.holds
	}
	return k.waits
}

// passUntil acquires, holds and releases until the context ends, and counts that.
func passUntil(ctx context.Context, t *testing.T, one acquire, hold time.Duration, passes *atomic.Int64) {
	t.Helper()
	for ctx.Err() == nil {
		got, err := one(ctx)
		if err != nil {
			return
		}
		rest(hold)
		assert.NoError(t, got.release(context.WithoutCancel(ctx)))
		passes.Add(1)
	}
}

// A client that receives no messages, beside two clients that want an object all the time, has it
// about as often as it asks. The others do not wait for it: all have the object as often as with a
// client that does receive messages.
func TestPollerAmongListeners(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	const hold, passes = 5 * time.Millisecond, 5
	server := rig.Fresh(t)
	options := latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 500 * time.Millisecond}}
	for what, kind := range passedOn {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			all := rig.Goroutines(t)
			var theirs atomic.Int64
			kind.prepare(t, server, name)
			for range 2 {
				one := kind.holds(connect(t, server, options), name)
				for range 2 {
					all.Go(func() { passUntil(ctx, t, one, hold, &theirs) })
				}
			}
			// rates returns the holds a second of the others, and of one more that wants it all the
			// time.
			rates := func(one acquire, passes int64) (others, its float64) {
				var n atomic.Int64
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				all.Go(func() { passUntil(ctx, t, one, hold, &n) })
				rig.Eventually(t, soon, "it has had its turns", func() error {
					if n := n.Load(); n < passes {
						return fmt.Errorf("%d of them", n)
					}
					return nil
				})
				began, before, itsBefore := time.Now(), theirs.Load(), n.Load()
				rest(sharesFor(t, time.Second))
				took := time.Since(began).Seconds()
				return float64(theirs.Load()-before) / took, float64(n.Load()-itsBefore) / took
			}
			listener, poller := kind.listener()(connect(t, server, options), name), kind.poller(t, server, name, options)
			rig.Eventually(t, soon, "all have it as often", func() error { // a busy machine is slow now and then
				without, listeners := rates(listener, passes)
				with, pollers := rates(poller, passes)
				t.Logf("holds a second of the others and of one more: that listens %.0f, %.0f; that polls %.0f, %.1f", without, listeners, with, pollers)
				if with+pollers < (without+listeners)/2 {
					return fmt.Errorf("%.0f a second, and %.0f", with+pollers, without+listeners)
				}
				return nil
			})
			stop()
			all.Wait() // before the clients are closed
		})
	}
}

// A client that receives no messages, and that has waited behind a long hold, gets its turn beside
// two clients that want the object all the time.
func TestPollerAfterALongHold(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	for what, kind := range passedOn {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			all := rig.Goroutines(t)
			kind.prepare(t, server, name)
			held, err := kind.holds(connect(t, server), name)(ctx)
			require.NoError(t, err)
			poller := kind.poller(t, server, name, latchkey.Options{})
			turn := make(chan error, 1)
			all.Go(func() {
				got, err := poller(ctx)
				if err == nil {
					err = got.release(context.WithoutCancel(ctx))
				}
				turn <- err
			})
			rest(6 * time.Second) // pollers poll less often the longer they wait
			for range 2 {
				one := kind.holds(connect(t, server), name)
				for range 2 {
					all.Go(func() { passUntil(ctx, t, one, 5*time.Millisecond, new(atomic.Int64)) })
				}
			}
			assert.NoError(t, held.release(ctx))
			select {
			case err := <-turn:
				assert.NoError(t, err)
			case <-time.After(soon):
				t.Error("others have it all the time")
			}
			stop()
			all.Wait() // before the clients are closed
		})
	}
}

// A waiter for a Lock is not delayed by a spin lock of its own client, which rests for longer.
func TestSpinnerDelaysNoWaiter(t *testing.T) {
	t.Parallel()
	client, other := connect(t, rig.Shared(), latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Minute}}), connect(t, rig.Shared())
	name := rig.Name(t)
	held := mustLock(t, other.NewLock(name))
	ctx, stop := context.WithCancel(t.Context())
	all := rig.Goroutines(t)
	spins := client.NewSpinLock(name, latchkey.Backoff{Initial: time.Millisecond, Max: time.Hour, Multiplier: 100})
	all.Go(func() {
		if h, err := spins.Lock(ctx); err == nil {
			assert.NoError(t, h.Unlock(context.WithoutCancel(ctx)))
		}
	})
	defer all.Wait() // before the clients are closed
	defer stop()
	awaitWaiting(t, client, latchkey.KindSpin, 1)
	waiter := lockInBackground(t.Context(), client.NewLock(name))
	awaitWaiting(t, client, latchkey.KindLock, 1)
	mustUnlock(t, held)
	select {
	case got := <-waiter:
		require.NoError(t, got.err)
		mustUnlock(t, got.hold)
	case <-time.After(soon):
		t.Fatal("the lock is free, and a waiter does not get it")
	}
}

// A poller is granted the lock by a message, because its client has begun to listen since the
// poller last polled. It keeps the lock, although it polls again at that moment.
func TestPollerOfAClientThatListens(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	client, other := connectVia(t, server, tap.Addr()), connect(t, server)
	held, elsewhere := mustLock(t, other.NewLock(name)), mustLock(t, other.NewLock(name+" elsewhere"))

	listens := tap.HoldCommand(rig.Both(rig.Subscribing, rig.MentionsPrefix("latchkey:{")))
	waiter := lockInBackground(t.Context(), client.NewLock(elsewhere.Name()))
	rig.Await(t, soon, "the subscription", listens.Arrived)
	spins := lockInBackground(t.Context(), client.NewSpinLock(name, latchkey.Backoff{}))
	queued(t, admin, name, 2) // its entry, and when it polls
	poll := tap.HoldCommand(rig.Mentions(name))
	rig.Await(t, soon, "a poll", poll.Arrived)
	listens.Release()
	rig.Eventually(t, soon, "the client listens", func() error {
		if listening(admin, name) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	mustUnlock(t, held)
	rest(50 * time.Millisecond) // until the message has arrived
	poll.Release()
	got := rig.Await(t, soon, "the spin lock", spins)
	require.NoError(t, got.err)
	rest(50 * time.Millisecond) // in which a release would arrive
	mustUnlock(t, got.hold)
	mustUnlock(t, elsewhere)
	mustUnlock(t, rig.Await(t, soon, "the other waiter", waiter).hold)
}
