package tests

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Helpers that detect that a client waits, or waits no longer.

// refused makes a call that is refused, with a longer wait until the server answers within it, and
// returns the error.
func refused(t testing.TB, call func(wait latchkey.WaitOption) error) error {
	t.Helper()
	_, err := refusedFrom(t, 50*time.Millisecond, func(wait time.Duration) error { return call(latchkey.Wait(wait)) })
	return err
}

// refusedFrom makes a call that is refused, first with the given wait, and with a longer one while
// the server does not answer within it. It returns the error and the wait.
func refusedFrom(t testing.TB, wait time.Duration, call func(wait time.Duration) error) (time.Duration, error) {
	t.Helper()
	for ; ; wait *= 2 {
		err := call(wait)
		if !errors.Is(err, latchkey.ErrUnavailable) || wait > soon {
			requireBusy(t, err)
			return wait, err
		}
	}
}

// persistent repeats for long what a busy machine does not answer soon.
var persistent = latchkey.Options{RetryBudget: soon}

// tookAbout checks a measured time: what it should be, or what a busy machine may add to that.
func tookAbout(t testing.TB, want, took time.Duration) {
	t.Helper()
	assert.GreaterOrEqual(t, took, want)
	assert.Less(t, took, want+leeway)
}

// awaitWaiter waits until a waiter is in a queue of the lock, or has subscribed to its channel. A
// waiter does either only after it was refused.
func awaitWaiter(t testing.TB, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "a waiter waits", func() error {
		fair := strings.NewReplacer("latchkey_queue_tag", "redisson_lock_queue", "latchkey_queue", "redisson_lock_queue").Replace(queueKey(name))
		if len(admin.Channels(name)) == 0 && !admin.Exists(queueKey(name)) && !admin.Exists(fair) {
			return errors.New("nobody is in the queue, and nobody listens")
		}
		return nil
	})
}

// queueKey is the key of the queue of this library's waiters for a lock.
func queueKey(name string) string {
	switch {
	case strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}"):
		return "latchkey_queue_tag:" + name
	case !strings.Contains(name, "{"):
		name = "{" + name + "}"
	}
	return "latchkey_queue:" + name
}

// connectRefused connects a client, and reports each of its attempts that finds a lock busy.
func connectRefused(t testing.TB, server *rig.Server, options ...latchkey.Options) (client *latchkey.Client, refused <-chan struct{}) {
	t.Helper()
	attempts := make(chan struct{}, 100)
	o := append(options, latchkey.Options{})[0]
	o.Observer = func(e latchkey.Event) {
		if e.Type == latchkey.EventAttempt && errors.Is(e.Err, latchkey.ErrNotAcquired) {
			select {
			case attempts <- struct{}{}:
			default: // nobody receives any more
			}
		}
	}
	return connect(t, server, o), attempts
}

// atRest waits until the only waiter of a client from connectRefused has no attempt in flight: it
// has tried once, and again after it subscribed. A test that cancels the waiter then knows the last
// reply it received. After awaitWaiter, the second reply may still be on its way.
func atRest(t testing.TB, refused <-chan struct{}) {
	t.Helper()
	for range 2 {
		rig.Await(t, soon, "the waiter is told that the lock is busy", refused)
	}
}

// waitingContext reports when a call waits for the end of its context. A call that wants a lock is
// then in line.
type waitingContext struct {
	context.Context

	first sync.Once
	waits chan struct{}
}

func newWaitingContext(ctx context.Context) *waitingContext {
	return &waitingContext{Context: ctx, waits: make(chan struct{})}
}

func (c *waitingContext) Done() <-chan struct{} {
	c.first.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// lockInLine acquires in another goroutine, and returns when that goroutine is in line for a lock
// that its client holds.
func lockInLine(ctx context.Context, t *testing.T, lock latchkey.Locker, options ...latchkey.LockOption) <-chan acquisition {
	t.Helper()
	waiting := newWaitingContext(ctx)
	done := lockInBackground(waiting, lock, options...)
	rig.Await(t, soon, "the call waits", waiting.waits)
	return done
}

// staysPending checks that a call in another goroutine does not end for 100 ms.
func staysPending[T any](t *testing.T, call <-chan T) {
	t.Helper()
	rig.Throughout(t, 100*time.Millisecond, "it waits", func() error {
		if len(call) > 0 {
			return errors.New("it has ended")
		}
		return nil
	})
}

// quiet waits until a client has queried after its subscription and sends nothing more.
func quiet(t *testing.T, tap *rig.Tap) {
	t.Helper()
	before, since := -1, time.Now()
	rig.Eventually(t, soon, "the client rests", func() error {
		if n := len(tap.Commands()); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) < 300*time.Millisecond {
			return errors.New("it asked just now")
		}
		return nil
	})
}
