package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Goroutines of two clients contend for the same two locks and name them in opposite orders. All of them acquire
// equally often, nobody is stranded, and most holds are passed on. LATCHKEY_TEST_CONTENTION sets the minimum number of
// acquisitions.
func TestMultiLock_contended_in_both_orders(t *testing.T) {
	require.NoError(t, rig.InTime(t, func(int) error { return contendInBothOrders(t, rig.Name(t)) }))
}

// contendInBothOrders returns an error if the contest was not fair, or the holds were not passed on, which may be so on
// a busy machine.
func contendInBothOrders(t *testing.T, name string) error {
	t.Helper()
	a, b := name+":a", name+":b"
	c := &contest{lasts: rig.Lasting(time.Second), passes: max(contendedPasses(t), 200)}
	var taps []*rig.Tap
	for _, order := range [][2]string{{a, b}, {b, a}} {
		tap := rig.NewTap(t, rig.Shared())
		client := connectVia(t, rig.Shared(), tap.Addr())
		lock := latchkey.NewMultiLock(client.NewLock(order[0]), client.NewLock(order[1]))
		c.contenders = append(c.contenders, contender{name: order[0], goroutines: 4, acquire: locking(lock)})
		taps = append(taps, tap)
	}
	c.dump = dumpOf(t, []*rig.Server{rig.Shared()}, name)
	c.run(t)
	sent := 0
	for _, tap := range taps {
		for _, command := range tap.Commands() {
			if rig.Mentions(a)(command) || rig.Mentions(b)(command) {
				sent++
			}
		}
	}
	perPass := float64(sent) / float64(c.total.Load())
	t.Logf("%.2f commands for an acquisition; %v", perPass, c)
	if jain := rig.Jain(c.tally.Counts()); jain <= 0.9 {
		return fmt.Errorf("Jain %.3f", jain)
	}
	if perPass >= 2 { // half of what holds cost that are not passed on, if nobody is in the way
		return fmt.Errorf("%.2f commands for an acquisition", perPass)
	}
	return nil
}

// A MultiLock gives up its wait for its last member at about the moment at which that member is granted to it. The next
// waiter gets that member at once, and none of the other members stays held.
func TestMultiLock_gives_back_what_is_granted_late(t *testing.T) {
	t.Parallel()
	name, admin := rig.Name(t), rig.NewAdmin(t, rig.Shared())
	options := latchkey.Options{Lease: 2 * time.Minute, StaleWaiterTimeout: time.Minute} // a grant ends long after soon
	holder, next := connect(t, rig.Shared(), options).NewLock(name+":b"), connect(t, rig.Shared(), options).NewLock(name+":b")
	client := connect(t, rig.Shared(), options)
	both := latchkey.NewMultiLock(client.NewLock(name+":a"), client.NewLock(name+":b"))
	had := 0
	tries := max(rig.Sized(20), 5)
	for range tries {
		hold := mustLock(t, holder)
		ctx, cancel := context.WithCancel(t.Context())
		waiting := lockInBackground(ctx, both)
		queued(t, admin, name+":b", 1)
		behind := lockInBackground(within(t, soon), next)
		queued(t, admin, name+":b", 2)
		go func() {
			rest(rand.N(time.Millisecond))
			cancel()
		}()
		mustUnlock(t, hold)
		if got := rig.Await(t, soon, "the group", waiting); got.err == nil {
			had++
			mustUnlock(t, got.hold)
		} else {
			require.ErrorIs(t, got.err, context.Canceled)
		}
		got := rig.Await(t, soon, "who stands behind it, before a grant would end", behind)
		require.NoError(t, got.err)
		mustUnlock(t, got.hold)
		rig.Eventually(t, soon, "nothing is left", free(admin, name+":a"))
	}
	t.Logf("%d of %d had both", had, tries)
}
