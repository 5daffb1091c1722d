package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A client relies on a grant without another query even after a wait that was longer than the lease
// of the grant, because the grant is later than the last refusal.
func TestHandover_after_a_long_wait(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const rounds = 3
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 600 * time.Millisecond, PollCeiling: 200 * time.Millisecond}}
		holder, waiter := k.open(connect(t, server), name), k.open(connectVia(t, server, tap.Addr(), options), name)
		assert.NoError(t, rig.InTime(t, func(int) error { // its polls must not be late
			asked := 0
			for range rounds {
				hold := mustLock(t, holder)
				next := lockInBackground(within(t, time.Minute), waiter)
				queued(t, admin, name, 1)
				rest(3 * options.Tuning.StaleWaiterTimeout / 2)
				before := len(tap.Commands())
				mustUnlock(t, hold)
				got := rig.Await(t, soon, "the waiter", next)
				require.NoError(t, got.err)
				for _, command := range tap.Commands()[before:] {
					if rig.Mentions(name)(command) {
						asked++
					}
				}
				if err := got.hold.Unlock(t.Context()); err != nil { // the lease of the grant was over
					return err
				}
			}
			if asked > rounds/2 { // but for polls
				return fmt.Errorf("it asked %d times in %d rounds", asked, rounds)
			}
			return nil
		}))
	}, handedOver)
}
