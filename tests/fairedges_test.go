package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The reply to the first attempt arrives after the end of the lease that it grants. The waiter then
// has no place in the queue and would not be woken, so it tries again.
func TestFairGrantThatComesTooLate(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	mustUnlock(t, mustLock(t, client.NewFairLock(name+" before"))) // the script is known
	held := tap.HoldReply(rig.Both(rig.Named("EVALSHA", "EVAL"), rig.Mentions(name)))
	start := time.Now()
	waiter := lockInBackground(within(t, time.Minute), client.NewFairLock(name), latchkey.Lease(time.Second))
	rig.Await(t, soon, "the answer is held back", held.Arrived)
	rest(1200 * time.Millisecond) // longer than the lease
	held.Release()
	next := rig.Await(t, time.Minute, "the lock", waiter)
	require.NoError(t, next.err)
	assert.Less(t, next.at.Sub(start), soon)
	_ = next.hold.Unlock(context.Background()) // its lease is short
}

// One node of a cluster is silent, and many wait there, each in its own slot. A waiter on another
// node never counts as dead.
func TestSilentNodeCostsNobodyElseAPlace(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	const crowd, stale = 200, 6 * time.Second
	cluster := rig.NewCluster(t)
	cluster.ServePartly()
	holder := connectCluster(t, cluster, latchkey.Options{Lease: time.Minute})
	client := connectCluster(t, cluster, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: stale}})
	good := t.Name()
	alive, admin := cluster.Serving(good)
	var silent *rig.Server
	for i, waiting := 0, 0; waiting < crowd; i++ {
		name := fmt.Sprintf("%s %d", good, i)
		server, there := cluster.Serving(name)
		if server == alive || silent != nil && server != silent {
			continue
		}
		silent = server
		waiting++
		mustLock(t, holder.NewFairLock(name))
		lockInBackground(t.Context(), client.NewFairLock(name))
		queueLength(t, there, name, 1)
	}
	hold := mustLock(t, holder.NewFairLock(good))
	waiter := lockInBackground(within(t, time.Minute), client.NewFairLock(good))
	queueLength(t, admin, good, 1)
	me := admin.Text("LINDEX", queueOf(good), "0")

	silent.Pause(t)
	defer silent.Resume(t)
	least := stale
	rig.Throughout(t, 2*stale, "the waiter is alive", func() error {
		note := admin.Text("HGET", notesOf(good), me)
		ms, err := strconv.ParseInt(note[strings.LastIndex(note, ":")+1:], 10, 64)
		least = min(least, time.Until(time.UnixMilli(ms)))
		if least <= 0 {
			err = errors.Join(err, fmt.Errorf("it counts as dead since %v", -least))
		}
		return err
	})
	t.Logf("it had %v left at least", least)
	mustUnlock(t, hold)
	next := rig.Await(t, soon, "the waiter", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// A silent node costs nobody else a hold either, however many of its own holds wait for their
// renewal.
func TestSilentNodeCostsNobodyElseAHold(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	const crowd, lease = 1200, 6 * time.Second
	cluster := rig.NewCluster(t)
	cluster.ServePartly()
	client := connectCluster(t, cluster, latchkey.Options{Lease: lease})
	alive, _ := cluster.Serving("{0}")
	doomed, silent := "{0}", alive
	for i := 1; silent == alive; i++ {
		doomed = fmt.Sprintf("{%d}", i)
		silent, _ = cluster.Serving(doomed)
	}
	var good []*latchkey.Hold
	for i := range crowd {
		if i < 50 {
			good = append(good, mustLock(t, client.NewLock("{0}"+strconv.Itoa(i))))
		}
		mustLock(t, client.NewLock(doomed+strconv.Itoa(i)))
	}
	late := rig.WatchLateness(alive.Raw(t))
	silent.Pause(t)
	defer silent.Resume(t)
	rest(2 * lease)
	lost := 0
	for _, hold := range good {
		if hold.Err() != nil {
			lost++
		} else {
			mustUnlock(t, hold)
		}
	}
	if late := late(); lost > 0 {
		assert.GreaterOrEqual(t, late, lease/6, "%d holds were lost that there was time to renew", lost)
	}
}
