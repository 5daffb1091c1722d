package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// More than 512 goroutines work on three shards, and one shard stops answering: locks of the others
// are acquired as fast as before. LATCHKEY_TEST_SILENCE=30s measures for that time, and requires
// nine tenths of the throughput and at most twice the latency.
func TestSilentShard_locks_of_others_go_on(t *testing.T) {
	lasts, least, most := rig.Lasting(time.Second), 0.5, 4.0
	if os.Getenv("LATCHKEY_TEST_SILENCE") != "" {
		lasts, least, most = rig.Campaign(t, "LATCHKEY_TEST_SILENCE", lasts), 0.9, 2
	}
	s := newShards(t, 64)
	client := connectCluster(t, s.Cluster, latchkey.Options{})
	s.contend(t, client, 640)
	work(t, client, s.onOthers, lasts/4) // loads the scripts and opens the connections
	require.NoError(t, rig.InTime(t, func(int) error {
		before := work(t, client, s.onOthers, lasts)
		s.pauseSilent(t)
		during := work(t, client, s.onOthers, lasts)
		s.silent.Resume(t)
		after := work(t, client, s.onOthers, lasts)
		t.Logf("before: %v", before)
		t.Logf("during: %v", during)
		t.Logf("after:  %v", after)
		// The machine may have been busy with something else before or after.
		if during.per < least*min(before.per, after.per) || during.p99().Seconds() > most*max(before.p99(), after.p99()).Seconds() {
			return errors.New("other shards suffer")
		}
		return nil
	}))
}

// 800 attempts with a timeout of 200 ms each, in a cluster with a silent shard: no call outlasts
// its deadline (FM-05), neither on that shard nor elsewhere. A third of the attempts go to the
// silent shard.
func TestSilentShard_deadlines_are_kept(t *testing.T) {
	const callers, patience, margin = 800, 200 * time.Millisecond, 2 * time.Second
	s := newShards(t, 64)
	client := connectCluster(t, s.Cluster, latchkey.Options{})
	work(t, client, s.onOthers, time.Second/10)
	work(t, client, s.onSilent, time.Second/10)
	s.pauseSilent(t)
	names := append(slices.Clone(s.onOthers), s.onSilent...)
	require.NoError(t, rig.InTime(t, func(int) error {
		over := rig.NewTally(callers) // by how much the calls outlast their deadlines
		for range 2 {
			tryAll(client, names, callers, patience, over)
		}
		if longest := over.Longest(); longest >= margin {
			return fmt.Errorf("the last call came back %v after its deadline", longest)
		}
		return nil
	}))
}

// tryAll makes that many attempts at once, each with its own deadline.
func tryAll(client *latchkey.Client, names []string, callers int, patience time.Duration, over *rig.Tally) {
	var trying sync.WaitGroup
	for i := range callers {
		lock := client.NewLock("{" + names[i%len(names)] + "}" + fmt.Sprint(i))
		trying.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if hold, err := lock.TryLock(ctx); err == nil {
				_ = hold.Unlock(context.Background())
				return
			}
			<-ctx.Done()
			deadline, _ := ctx.Deadline()
			over.Add(i, time.Since(deadline))
		})
	}
	trying.Wait()
}

// Holds of other shards are renewed and released while the renewals and releases of the silent
// shard, more than the reserved number, get no reply.
func TestSilentShard_renewals_and_releases_of_others_go_on(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	const lease, names = 20 * time.Second, 300
	s := newShards(t, names)
	client := connectCluster(t, s.Cluster, latchkey.Options{Lease: lease})
	kept := make([]*latchkey.Hold, 0, 50)
	for _, name := range s.onOthers[:cap(kept)] {
		kept = append(kept, mustLock(t, client.NewLock(name)))
	}
	stuck := make([]*latchkey.Hold, 0, names)
	for _, name := range s.onSilent {
		stuck = append(stuck, mustLock(t, client.NewLock(name)))
	}
	s.pauseSilent(t)
	s.contend(t, client, 600)
	var releasing sync.WaitGroup
	for _, hold := range stuck {
		releasing.Go(func() { _ = hold.Unlock(context.Background()) })
	}
	renewedAgain(t, lease, kept...)
	start := time.Now()
	for _, hold := range kept {
		mustUnlock(t, hold)
	}
	took := time.Since(start)
	unaffected := connectCluster(t, s.Cluster, latchkey.Options{})
	start = time.Now()
	for _, name := range s.onOthers[:len(kept)] {
		mustUnlock(t, mustLock(t, unaffected.NewLock(name)))
	}
	control := time.Since(start)
	t.Logf("%d releases in %v, as many locks and releases of another client in %v", len(kept), took, control)
	require.Less(t, took, soon+control, "a release that waits for the silent shard takes its whole budget")
	releasing.Wait()
}

// An acquisition on another shard whose outcome is unknown is undone at once, not when its lease
// ends.
func TestSilentShard_undo_of_others_goes_on(t *testing.T) {
	t.Parallel()
	s := newShards(t, 200)
	server := s.Server()
	tap := rig.NewTap(t, server)
	client, other := connectVia(t, server, tap.Addr()), connectCluster(t, s.Cluster, latchkey.Options{})
	work(t, client, s.onOthers, time.Second/10)
	work(t, client, s.onSilent, time.Second/10)
	s.pauseSilent(t)
	s.contend(t, client, 600)
	rest(1500 * time.Millisecond) // the outcomes of several hundred calls on the silent shard are unknown
	for _, name := range s.onOthers[:4] {
		name = "{" + name + "} in doubt"
		reply := tap.HoldReply(rig.Mentions(name))
		ctx, giveUp := context.WithCancel(t.Context())
		doubtful := lockInBackground(ctx, client.NewLock(name))
		rig.Await(t, soon, "the acquisition", reply.Arrived)
		giveUp()
		require.ErrorIs(t, rig.Await(t, soon, "its outcome", doubtful).err, latchkey.ErrUnknownOutcome)
		reply.Release()
		mustUnlock(t, mustLock(t, other.NewLock(name))) // sooner than the lease of the acquisition ends
	}
}

// A client can be opened while a shard is silent, and serves the others.
func TestSilentShard_clients_can_be_opened(t *testing.T) {
	t.Parallel()
	s := newShards(t, 4)
	s.pauseSilent(t)
	for range rig.Sized(2) {
		client := connectCluster(t, s.Cluster, latchkey.Options{})
		assert.Zero(t, work(t, client, s.onOthers, time.Second/10).failed)
	}
}

// A release wakes a waiter for a lock of another shard.
func TestSilentShard_waiters_of_others_are_woken(t *testing.T) {
	for name, mode := range map[string]bool{"sharded": false, "classic": true} {
		t.Run(name, func(t *testing.T) {
			s := newShards(t, 6)
			options := latchkey.Options{Tuning: latchkey.Tuning{ClassicPubSub: mode, PollCeiling: time.Minute}, Lease: 2 * time.Minute}
			holder, waiter := connectCluster(t, s.Cluster, options), connectCluster(t, s.Cluster, options)
			work(t, waiter, s.onSilent, time.Second/10)
			s.pauseSilent(t)
			s.contend(t, waiter, 600)
			var slowest time.Duration
			for _, name := range s.onOthers {
				hold := mustLock(t, holder.NewLock(name))
				waiting := lockInBackground(within(t, time.Minute), waiter.NewLock(name))
				s.listening(t, name)
				start := time.Now()
				mustUnlock(t, hold)
				next := rig.Await(t, soon, "the waiter", waiting)
				require.NoError(t, next.err)
				slowest = max(slowest, next.at.Sub(start))
				mustUnlock(t, next.hold)
			}
			t.Logf("woken %v after the release at the latest", slowest)
		})
	}
}
