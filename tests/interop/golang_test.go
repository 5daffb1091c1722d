package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// within returns a context for something that must end soon.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// lockOf opens a lock by the name that the driver has for its kind.
func lockOf(client *latchkey.Client, kind, name string) anyLock {
	switch kind {
	case "lock":
		return client.NewLock(name)
	case "spin":
		return client.NewSpinLock(name, latchkey.Backoff{})
	case "fenced":
		return client.NewFencedLock(name)
	case "fair":
		return client.NewFairLock(name)
	case "read":
		return client.NewRWLock(name).Reader()
	case "write":
		return client.NewRWLock(name).Writer()
	}
	panic(fmt.Sprintf("no kind of lock is called %q", kind))
}

// locks are the kinds that exclude.
var locks = []string{"lock", "spin", "fenced", "fair", "write"}

// result is the result of something that ran in another goroutine.
type result[T any] struct {
	value T
	err   error
	at    time.Time // when it returned
}

func inBackground[T any](f func() (T, error)) <-chan result[T] {
	done := make(chan result[T], 1)
	go func() {
		v, err := f()
		done <- result[T]{v, err, time.Now()}
	}()
	return done
}

// subscribed waits until at least n connections listen to a channel.
func subscribed(t *testing.T, admin *rig.Admin, channel string, n int64) {
	t.Helper()
	rig.Eventually(t, soon, "a waiter listens to "+channel, func() error {
		if got := admin.Subscribers(channel); got < n {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
}
