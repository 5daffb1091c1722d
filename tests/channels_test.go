package tests

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The locks "x" and "{x}" are two, with one channel: waiters for both are woken by
// messages, and the channel is given up when nobody waits for either.
func TestLocksThatShareAChannel(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	options := latchkey.Options{PollCeiling: 20 * time.Second}
	other, client := connect(t, server, options), connect(t, server, options)
	names := []string{"x", "{x}"}
	for round := range 2 {
		var holds []*latchkey.Hold
		var waits []<-chan acquisition
		for _, name := range names {
			holds = append(holds, mustLock(t, other.NewLock(name)))
			before := admin.CommandStats()["subscribe"]
			waits = append(waits, lockInBackground(within(t, time.Minute), client.NewLock(name)))
			rig.Eventually(t, soon, "the waiter listens", func() error {
				if admin.CommandStats()["subscribe"] == before {
					return errors.New("no subscription")
				}
				return nil
			})
		}
		for i, hold := range holds {
			start := time.Now()
			mustUnlock(t, hold)
			got := rig.Await(t, soon, names[i], waits[i])
			require.NoError(t, got.err)
			assert.Less(t, got.at.Sub(start), 2*time.Second, "woken by the message, round %d", round)
			mustUnlock(t, got.hold)
		}
		rig.Eventually(t, 10*time.Second, "nobody listens", func() error {
			if channels := admin.Channels("x"); len(channels) > 0 {
				return errors.New(channels[0])
			}
			return nil
		})
	}
}
