package tests

import (
	"errors"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Helpers that detect that a client waits.

// parked waits until a waiter is in a queue of the lock, or has subscribed to its channel. A waiter
// does either only after it was refused.
func parked(t testing.TB, admin *rig.Admin, name string) {
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
	told := make(chan struct{}, 100)
	o := append(options, latchkey.Options{})[0]
	o.Observer = func(e latchkey.Event) {
		if e.Type == latchkey.EventAttempt && errors.Is(e.Err, latchkey.ErrNotAcquired) {
			select {
			case told <- struct{}{}:
			default: // nobody receives any more
			}
		}
	}
	return connect(t, server, o), told
}

// atRest waits until the only waiter of a client from connectRefused has no attempt in flight: it
// has tried once, and again after it subscribed. A test that cancels the waiter then knows the last
// reply it received. After parked, the second reply may still be on its way.
func atRest(t testing.TB, refused <-chan struct{}) {
	t.Helper()
	for range 2 {
		rig.Await(t, soon, "the waiter is told that the lock is busy", refused)
	}
}
