package tests

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Redisson's rule for hash tags gives the locks "x" and "{x}" one channel. They have
// nothing else in common.

// twins are two locks that share a channel, both held by one client and waited for by
// another.
type twins struct {
	holds   [2]*latchkey.Hold
	waiting [2]<-chan acquisition
}

// newTwins lets the second waiter come when the channel is subscribed for the first.
func newTwins(t *testing.T, holding, waiting *latchkey.Client, name string) *twins {
	t.Helper()
	w := &twins{}
	for i, name := range []string{name, "{" + name + "}"} {
		w.holds[i] = mustLock(t, holding.NewLock(name))
		w.waiting[i] = lockInBackground(within(t, time.Minute), waiting.NewLock(name))
		rest(500 * time.Millisecond)
	}
	return w
}

// handOver releases one of the two, whose waiter is to hear of it, and that of the
// other is to stay where it is.
func (w *twins) handOver(t *testing.T, i int) {
	t.Helper()
	start := time.Now()
	mustUnlock(t, w.holds[i])
	next := rig.Await(t, time.Minute, "the waiter", w.waiting[i])
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	assert.Less(t, next.at.Sub(start), 2*time.Second, "not woken by the message")
	assert.Empty(t, w.waiting[1-i], "the other lock is held")
}

// Both waiters are woken, whichever subscribed first and whichever is left when the
// other has been gone for so long that its subscription has ended. It all works
// again once nothing is subscribed any more.
func TestChannelShared_wakes_both_waiters(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	holding, waiting := connect(t, server, patient), connect(t, server, patient)
	for _, first := range []int{0, 1, 0} {
		w := newTwins(t, holding, waiting, name)
		require.EqualValues(t, 1, admin.Subscribers(channelOf(name)))
		w.handOver(t, first)
		rest(4 * time.Second)
		w.handOver(t, 1-first)
		rig.Eventually(t, soon, "nothing is subscribed", unsubscribed(admin, name))
	}
}

func unsubscribed(admin *rig.Admin, name string) func() error {
	return func() error {
		if left := admin.Channels(name); len(left) > 0 {
			return errors.New(left[0])
		}
		return nil
	}
}

// A subscription connection that is cut comes back for both.
func TestChannelShared_comes_back_for_both(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	w := newTwins(t, connect(t, server, patient), connectVia(t, server, tap.Addr(), patient), name)
	before := tap.Accepted()
	require.Positive(t, tap.CutSubscribers())
	rig.Eventually(t, soon, "another connection", func() error {
		if tap.Accepted() == before || tap.Subscribers() == 0 {
			return errors.New("none")
		}
		return nil
	})
	parked(t, admin, name)
	rest(500 * time.Millisecond)
	w.handOver(t, 0)
	w.handOver(t, 1)
}

// The release of one falls between the refusal of its waiter and the subscription,
// while the channel is subscribed for the other already.
func TestChannelShared_second_waiter_looks_again(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	holding := connect(t, server, patient)
	waiting := connectVia(t, server, tap.Addr(), patient)
	mustLock(t, holding.NewLock(name))
	braced := mustLock(t, holding.NewLock("{"+name+"}"))
	lockInBackground(within(t, time.Minute), waiting.NewLock(name))
	parked(t, admin, name)
	refusal := tap.HoldReply(rig.Mentions("{" + name + "}"))
	waiter := lockInBackground(within(t, time.Minute), waiting.NewLock("{"+name+"}"))
	rig.Await(t, soon, "the refusal", refusal.Arrived)
	mustUnlock(t, braced) // its message finds nobody that waits for it
	rest(100 * time.Millisecond)
	refusal.Release()
	next := rig.Await(t, 2*time.Second, "the waiter looks again", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// Two waiters on one channel leave no goroutine and no connection when they are done.
func TestChannelShared_leaves_nothing(t *testing.T) {
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	before := goleak.IgnoreCurrent()
	holding, closeHolding, err := dial(server, server.Addr(), patient)
	require.NoError(t, err)
	waiting, closeWaiting, err := dial(server, server.Addr(), patient)
	require.NoError(t, err)
	w := newTwins(t, holding, waiting, "x")
	w.handOver(t, 1)
	w.handOver(t, 0)
	rig.Eventually(t, soon, "the subscription connection is closed", func() error {
		if len(admin.Channels("")) > 0 {
			return errors.New("still there")
		}
		return nil
	})
	require.NoError(t, closeWaiting(within(t, soon)))
	require.NoError(t, closeHolding(within(t, soon)))
	assert.NoError(t, goleak.Find(before))
}

// In a cluster both are woken, sharded or not, and also after the slot has moved.
func TestChannelShared_in_a_cluster(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	for mode, option := range map[string]latchkey.ShardedPubSub{"sharded": latchkey.ShardedAuto, "classic": latchkey.ShardedOff} {
		t.Run(mode, func(t *testing.T) {
			options := latchkey.Options{ShardedPubSub: option, PollCeiling: byMessage, Lease: 2 * byMessage}
			holding, waiting := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
			name := "x " + mode
			for range 4 { // the slot passes through every master more than once
				w := newTwins(t, holding, waiting, name)
				cluster.MoveSlot(name)
				rest(700 * time.Millisecond) // for the new subscription
				w.handOver(t, 0)
				w.handOver(t, 1)
			}
		})
	}
}
