package tests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const (
	outageLasts = 4 * time.Second // less than the retry budget and every lease
	outageRests = 4 * time.Second // until the next
)

// While all kinds of objects are in use, the server refuses everything for some seconds, or another
// takes its place, again and again. No call fails, no hold is lost, and everybody goes on within
// two seconds of each repair.
func TestOutages(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process, rig.Settings, rig.Topology)
	rig.Long(t)
	notInCluster(t, "its nodes refuse for themselves")
	for what, begin := range map[string]func(t *testing.T, server *rig.Server) (end func()){
		"full disk":  func(t *testing.T, server *rig.Server) func() { t.Helper(); return rig.NewAdmin(t, server).FillDisk() },
		"MASTERDOWN": losesItsMaster,
	} {
		t.Run(what, func(t *testing.T) {
			server := rig.Fresh(t)
			c := newOutageCampaign(t, server, server.Addr())
			c.repeat(outageLasts, func() (end func()) { return begin(t, server) })
		})
	}
	t.Run("changed endpoint", func(t *testing.T) {
		f := newFixedEndpoint(t)
		c := newOutageCampaign(t, f.pair.Master, f.tap.Addr())
		c.repeat(0, func() (end func()) {
			f.swap()
			return func() {}
		})
	})
}

// losesItsMaster makes the server a replica of a master that is not there.
func losesItsMaster(t *testing.T, server *rig.Server) (end func()) {
	t.Helper()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(nobody.Addr().String())
	require.NoError(t, err)
	admin := rig.NewAdmin(t, server)
	admin.Do("CONFIG", "SET", "replica-serve-stale-data", "no")
	admin.Do("REPLICAOF", host, port)
	return func() {
		admin.Do("REPLICAOF", "NO", "ONE")
		_ = nobody.Close()
	}
}

// outageCampaign has users of all kinds of objects at work.
type outageCampaign struct {
	t     *testing.T
	users []*outageUser
	kept  []func() error // checks and ends a hold that lasts for the whole campaign
}

// outageUser passes again and again.
type outageUser struct {
	name   string
	pass   func(ctx context.Context, round int) error
	passes atomic.Int64
}

func newOutageCampaign(t *testing.T, server *rig.Server, addr string) *outageCampaign {
	t.Helper()
	c := &outageCampaign{t: t}
	for i := range 2 {
		// What is granted to a waiter begins with this timeout as its lease, and Acquire returns
		// with half of it left.
		client := connectVia(t, server, addr, latchkey.Options{RetryBudget: soon, Tuning: latchkey.Tuning{StaleWaiterTimeout: 4 * outageLasts}})
		c.addLocks(client, i)
		c.addOthers(client, i)
	}
	return c
}

func (c *outageCampaign) add(name string, pass func(ctx context.Context, round int) error) {
	c.users = append(c.users, &outageUser{name: name, pass: pass})
}

// addLocks adds the users of a client that lock and unlock, and its holds that last.
func (c *outageCampaign) addLocks(client *latchkey.Client, i int) {
	c.t.Helper()
	acquires := map[string]acquire{
		"MultiLock":       locking(bothOf([]*latchkey.Client{client}, "multi")),
		"Semaphore":       permitsOf([]*latchkey.Client{client}, "semaphore")[0].acquire,
		"PermitSemaphore": permitsWithIDs([]*latchkey.Client{client}, "permits")[0].acquire,
		"FairSemaphore":   fairPermitsOf(client, "fairpermits"),
	}
	for _, k := range append(kinds, readKind) {
		acquires[k.name] = locking(k.open(client, k.name))
		kept := mustLock(c.t, k.open(client, fmt.Sprint("kept", k.name, i)))
		c.kept = append(c.kept, func() error { return errors.Join(kept.Err(), kept.Unlock(context.Background())) })
	}
	for name, acquire := range acquires {
		c.add(name, func(ctx context.Context, _ int) error {
			got, err := acquire(ctx)
			if err != nil {
				return err
			}
			rest(5 * time.Millisecond)
			return got.release(context.WithoutCancel(ctx))
		})
	}
	permits := client.NewPermitSemaphore(fmt.Sprint("kept", i))
	_, err := permits.TrySetPermits(c.t.Context(), 1)
	require.NoError(c.t, err)
	permit, err := permits.Acquire(c.t.Context())
	require.NoError(c.t, err)
	c.kept = append(c.kept, func() error { return errors.Join(permit.Err(), permit.Release(context.Background())) })
}

// addOthers adds the users of a client that elect, count down and meet.
func (c *outageCampaign) addOthers(client *latchkey.Client, i int) {
	c.add("Election", func(ctx context.Context, _ int) error {
		leadership, err := client.NewElection("election").Campaign(ctx, "")
		if err != nil {
			return err
		}
		return leadership.Resign(context.WithoutCancel(ctx))
	})
	c.add("CountDownLatch", func(ctx context.Context, round int) error {
		latch := client.NewCountDownLatch(fmt.Sprint("latch", i, ":", round))
		if _, err := latch.TrySetCount(ctx, 1); err != nil {
			return err
		}
		time.AfterFunc(10*time.Millisecond, func() { _, _ = latch.CountDown(context.WithoutCancel(ctx)) })
		return latch.Await(ctx)
	})
	c.add("Barrier", func(ctx context.Context, _ int) error {
		_, err := client.NewBarrier("barrier", 2).Await(ctx)
		return err
	})
}

// repeat has outages, one after the other, while the users work.
func (c *outageCampaign) repeat(lasts time.Duration, begin func() (end func())) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	all := rig.Goroutines(c.t)
	for _, u := range c.users {
		all.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				if err := u.pass(ctx, round); ctx.Err() == nil {
					assert.NoError(c.t, err, u.name)
				}
				u.passes.Add(1)
			}
		})
	}
	end := time.Now().Add(rig.Campaign(c.t, "LATCHKEY_TEST_OUTAGES", outageLasts+outageRests))
	var slowest time.Duration
	outages := 0
	for ; time.Now().Before(end); outages++ {
		c.allPass(c.counts())
		repair := begin()
		rest(lasts)
		repair()
		slowest = max(slowest, c.allPass(c.counts()))
		rest(outageRests)
	}
	stop()
	all.Wait()
	for _, check := range c.kept {
		assert.NoError(c.t, check())
	}
	c.t.Logf("%d outages; after each all %d went on within %v", outages, len(c.users), slowest.Round(time.Millisecond))
	rig.Target(c.t, slowest < 2*time.Second, "the slowest took %v", slowest)
}

func (c *outageCampaign) counts() (counts []int64) {
	for _, u := range c.users {
		counts = append(counts, u.passes.Load())
	}
	return counts
}

// allPass waits until each user has passed once more, and returns how long that takes.
func (c *outageCampaign) allPass(before []int64) time.Duration {
	c.t.Helper()
	start := time.Now()
	for i, u := range c.users {
		rig.Eventually(c.t, soon, u.name+" goes on", func() error {
			if u.passes.Load() == before[i] {
				return errors.New("not yet")
			}
			return nil
		})
	}
	return time.Since(start)
}
