package tests

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// byMessage is a poll ceiling that no waiter of a test reaches: a waiter that wakes sooner was
// woken by a message.
const byMessage = 5 * time.Minute

func connectCluster(t *testing.T, cluster *rig.Cluster, options latchkey.Options) *latchkey.Client {
	t.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	client, err := latchkey.Connect(within(t, soon), cluster.URL(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(within(t, 3*soon))) })
	return client
}

// Messages, sharded or not, wake waiters on locks of many slots.
func TestCluster_wakes_waiters_of_every_slot(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	for name, mode := range map[string]bool{"sharded": false, "classic": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := latchkey.Options{Tuning: latchkey.Tuning{ClassicPubSub: mode, PollCeiling: byMessage}, Lease: 2 * byMessage}
			a, b := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
			const locks = 30
			lock := func(client *latchkey.Client, i int) anyLock {
				job := fmt.Sprintf("%s:{job %d}", t.Name(), i)
				if i%2 == 0 {
					return client.NewFairLock(job)
				}
				return client.NewFencedLock(job)
			}
			holds := make([]*latchkey.Hold, locks)
			waiting := make([]<-chan acquisition, locks)
			for i := range locks {
				holds[i] = mustLock(t, lock(a, i))
				waiting[i] = lockInBackground(within(t, byMessage), lock(b, i))
			}
			// The longest way to wait for a message: refused, redirected, subscribed, refused. Most
			// likely they have gone it then.
			rest(300 * time.Millisecond)
			start := time.Now()
			for i := range locks {
				mustUnlock(t, holds[i])
				next := rig.Await(t, soon, "the waiter", waiting[i])
				require.NoError(t, next.err)
				mustUnlock(t, next.hold)
			}
			t.Logf("%d hand-overs in %v", locks, time.Since(start))
		})
	}
}

// Holds in many slots are renewed, and a hold whose slot moves is kept.
func TestCluster_renews_across_slots_and_moves(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	renewed := make(chan string, 10_000)
	client := connectCluster(t, cluster, latchkey.Options{Lease: 5 * time.Second, Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventRenewed {
			renewed <- e.Name
		}
	}})
	name := rig.Name(t)
	holds := make([]*latchkey.Hold, 20)
	for i := range holds {
		holds[i] = mustLock(t, client.NewLock(fmt.Sprint(name, i)))
	}
	allRenewed := func() {
		t.Helper()
		for left := len(renewed); left > 0; left-- {
			<-renewed // it was renewed before
		}
		for seen := map[string]bool{}; len(seen) < len(holds); {
			seen[rig.Await(t, soon, "a renewal", renewed)] = true
		}
	}
	allRenewed()
	cluster.MoveSlot(holds[0].Name())
	allRenewed()
	for _, hold := range holds {
		require.NoError(t, hold.Err())
		mustUnlock(t, hold)
	}
}

// A waiter whose slot moves to another master learns of the release there (FM-55): the old master
// ends the subscription, and the client subscribes at the new one.
func TestCluster_waiter_follows_its_slot(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	options := latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: byMessage}, Lease: 2 * byMessage}
	holder, waiter := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
	name := rig.Name(t) + shard
	for range 4 { // the slot passes through every master more than once
		hold := mustLock(t, holder.NewLock(name))
		waiting := lockInBackground(within(t, byMessage), waiter.NewLock(name))
		cluster.AwaitListening(1, name)
		cluster.MoveSlot(name)
		cluster.AwaitListening(1, name)
		start := time.Now()
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiting)
		require.NoError(t, next.err)
		t.Logf("woken %v after the release", time.Since(start))
		mustUnlock(t, next.hold)
	}
}

// After a manual failover the former master follows the new one and ends no subscriptions. The
// client subscribes where the new master counts it, so that the new master does not take back what
// it grants.
func TestCluster_subscriptions_follow_the_master(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	client := connectCluster(t, cluster, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}})
	name := rig.Name(t) + shard
	hold := mustLock(t, client.NewLock(name))
	waiting := lockInBackground(within(t, time.Minute), connectCluster(t, cluster, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}}).NewLock(name))
	cluster.AwaitListening(1, name)
	for range 2 { // there and back
		cluster.Failover(name)
		cluster.AwaitListening(1, name)
	}
	mustUnlock(t, hold)
	got := rig.Await(t, soon, "the waiter", waiting)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
}
