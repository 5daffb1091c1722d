package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A server, or a proxy in front of it, refuses new connections at their greeting.

// A command is not in doubt if its connection is refused at the greeting: nothing was sent.
func TestGreeting_refused(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	for _, text := range []string{"NOAUTH Authentication required.", "LOADING Redis is loading"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			tap := rig.NewTap(t, server)
			client := connectVia(t, server, tap.Addr(), latchkey.Options{Label: latchkey.NoLabel, RetryBudget: 400 * time.Millisecond, Lease: 12 * time.Second})
			hold := mustLock(t, client.NewLock(name))
			stop := tap.RefuseGreetings(text)
			tap.Cut()
			require.Error(t, firstOf(client.NewLock(name+" other").TryLock(within(t, soon)))) // it may have been sent before the cut
			for range 3 {
				err := firstOf(client.NewLock(name + " other").TryLock(within(t, soon)))
				require.Error(t, err)
				assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
			}
			stop()
			rig.Eventually(t, soon, "it goes on", func() error {
				other, err := client.NewLock(name + " other").TryLock(within(t, soon))
				if err == nil {
					mustUnlock(t, other)
				}
				return err
			})
			mustUnlock(t, hold)
		})
	}
}

// A client whose subscription is refused at the greeting does not dial in a tight loop.
func TestGreeting_refused_to_a_subscriber(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr(), latchkey.Options{Label: latchkey.NoLabel, Lease: time.Minute})
	held := mustLock(t, connect(t, server).NewLock(name))
	waiter := lockInBackground(within(t, 2*soon), client.NewLock(name))
	awaitWaiting(t, client, latchkey.KindLock, 1)
	stop := tap.RefuseGreetings("NOAUTH Authentication required.")
	tap.Cut()
	before, began := tap.Accepted(), time.Now()
	rest(2 * time.Second)
	dials, took := tap.Accepted()-before, time.Since(began)
	assert.LessOrEqual(t, dials, 20*(int(took/time.Second)+1), "in %v", took)
	stop()
	mustUnlock(t, held)
	if got := rig.Await(t, 2*soon, "the waiter", waiter); got.err == nil {
		mustUnlock(t, got.hold)
	}
}
