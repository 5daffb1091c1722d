package tests

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// How a test finds out that somebody waits.

// parked waits until a waiter on the lock has subscribed to its channel, which it
// does only after it was refused.
func parked(t testing.TB, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "a waiter subscribes", func() error {
		if len(admin.Channels(name)) == 0 {
			return errors.New("no subscription")
		}
		return nil
	})
}

// connectRefused connects a client, and tells of each attempt of it that finds a lock busy.
func connectRefused(t testing.TB, server *rig.Server, options ...latchkey.Options) (client *latchkey.Client, refused <-chan struct{}) {
	t.Helper()
	told := make(chan struct{}, 100)
	o := append(options, latchkey.Options{})[0]
	o.Observer = func(e latchkey.Event) {
		if e.Type == latchkey.EventAttempt && errors.Is(e.Err, latchkey.ErrNotAcquired) {
			select {
			case told <- struct{}{}:
			default: // nobody listens any more
			}
		}
	}
	return connect(t, server, o), told
}

// atRest waits until the only waiter of a client that was made with connectRefused has no
// question under way: it has asked, and once more when it listened. Whoever cancels it then
// knows what it was told; after parked the second answer may still be on its way.
func atRest(t testing.TB, refused <-chan struct{}) {
	t.Helper()
	for range 2 {
		rig.Await(t, soon, "the waiter is told that the lock is busy", refused)
	}
}
