package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// topology is a deployment that survives the loss of its master.
type topology struct {
	url  string
	ways map[string]func() // to lose the master; they return when there is a new one
	heal func()            // brings back what was lost
	// listening returns an error unless the clients, which wait for permits of a fair semaphore,
	// listen to the master.
	listening func(name string, clients ...*latchkey.Client) error
}

// shard is the hash tag of everything that the tests below look at in a cluster.
const shard = "{shard}"

func sentinels(t *testing.T) topology {
	s := rig.NewSentinel(t, 1)
	listening := func(name string, clients ...*latchkey.Client) error {
		server, admin := s.Master()
		for _, client := range clients {
			if admin.Subscribers(permitChannelOf(server, client, name)) == 0 {
				return fmt.Errorf("%s does not listen", client.ID())
			}
		}
		return nil
	}
	return topology{s.URL(), map[string]func(){
		"asked":  func() { s.Failover() },
		"killed": func() { s.Successor(s.Kill()) },
		"paused": func() { s.Successor(s.Pause()) },
	}, s.Heal, listening}
}

func clusters(t *testing.T) topology {
	c := rig.NewCluster(t)
	return topology{c.URL(), map[string]func(){
		"asked":  func() { c.Failover(shard) },
		"killed": func() { c.Successor(shard, c.Kill(shard)) },
		"paused": func() { c.Successor(shard, c.Pause(shard)) },
	}, c.Heal, func(name string, clients ...*latchkey.Client) error { return c.Listening(len(clients), name) }}
}

// failovers returns how many failovers there are of each way. The short form has one, and
// acknowledgement for one way only.
func failovers() (n int, short bool) {
	n, err := strconv.Atoi(os.Getenv("LATCHKEY_TEST_FAILOVERS"))
	if err != nil {
		return 1, true
	}
	return n, false
}

// Everything in flight when the master is lost (a hold, its renewal, a wait, a release, an
// acquisition, of every kind) continues with the next master, or its caller learns that it is over.
func TestFailover(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	for name, open := range map[string]func(*testing.T) topology{"Sentinel": sentinels, "Cluster": clusters} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := open(t)
			_, short := failovers()
			// The ways have no subtests, because the topology can end only the test that it was
			// made for.
			for _, way := range []string{"asked", "killed", "paused"} {
				t.Log(way)
				c := newFailoverSeries(t, top, latchkey.Options{Lease: 4 * time.Second})
				c.run(top.ways[way])
				if name == "Cluster" && way == "asked" { // a manual failover waits for the replica
					assert.Zero(t, c.guard.overlaps, "nothing is lost")
					assert.Zero(t, c.pools.gate.times, "nor are permits")
				}
				if short && way != "killed" {
					continue
				}
				t.Log(way, "with acknowledgement")
				c = newFailoverSeries(t, top, latchkey.Options{Lease: 30 * time.Second, Replicas: latchkey.Replicas{Min: 1}})
				c.run(top.ways[way])
				assert.Equal(t, c.holds, c.kept, "a hold that was granted survives")
				assert.Zero(t, c.guard.overlaps, "and is the only one")
				assert.Zero(t, c.pools.gate.times, "no more permits are held than there are")
			}
		})
	}
}

// failoverSeries is a series of failovers and their outcome.
type failoverSeries struct {
	t        *testing.T
	top      topology
	options  latchkey.Options
	a, b     *latchkey.Client
	witness  *latchkey.Client // its acquisitions wait for the replica
	prefix   string
	guard    overlapDetector
	election *failoverElection
	barrier  *failoverBarrier
	pools    *failoverPools
	clients  []*latchkey.Client

	holds, kept, told int
	wait              time.Duration // the longest wait of a waiter after everything worked again
}

func newFailoverSeries(t *testing.T, top topology, options latchkey.Options) *failoverSeries {
	c := &failoverSeries{t: t, top: top, options: options, prefix: rig.Name(t) + shard, guard: overlapDetector{inside: map[string][]*stay{}}}
	c.a, c.b = c.connect(options), c.connect(options)
	c.witness = c.connect(latchkey.Options{Replicas: latchkey.Replicas{Min: 1}})
	c.election, c.barrier, c.pools = newFailoverElection(c), newFailoverBarrier(c), newFailoverPools(c)
	return c
}

// replicate returns when the replica has everything that was written before the call. What a
// failover loses because a replica lags behind is up to Redis.
func (c *failoverSeries) replicate() {
	_ = c.insist(c.witness.NewMutex(c.prefix + "witness")).Unlock(context.Background())
}

func (c *failoverSeries) connect(options latchkey.Options) *latchkey.Client {
	options.Logger = slog.New(slog.DiscardHandler)
	client, err := latchkey.Connect(within(c.t, soon), c.top.url, options)
	require.NoError(c.t, err)
	c.clients = append(c.clients, client)
	return client
}

func (c *failoverSeries) close() {
	for _, client := range c.clients {
		assert.NoError(c.t, client.Close(within(c.t, soon)))
	}
}

func (c *failoverSeries) run(lose func()) {
	var churn sync.WaitGroup
	ctx, stop := context.WithCancel(c.t.Context())
	defer func() { stop(); churn.Wait(); c.close() }()
	for i := range 6 {
		churn.Go(func() { c.churn(ctx, i) })
	}
	for i := range 3 {
		churn.Go(func() { c.election.churn(ctx, i) })
	}
	for i := range 2 {
		churn.Go(func() { c.barrier.churn(ctx, i) })
	}
	for i := range 4 {
		churn.Go(func() { c.pools.churn(ctx, i) })
	}
	n, _ := failovers()
	for i := range n {
		c.round(i, lose)
	}
	stop()
	churn.Wait()
	c.t.Logf("%d failovers: of %d holds %d were kept and %d told; %d grants, the longest time without one %v; "+
		"%d times two held at once, for %v at most; the last waiter was served %v after the end of all trouble",
		n, c.holds, c.kept, c.told, c.guard.grants, c.guard.gap, c.guard.overlaps, c.guard.longest, c.wait)
	c.t.Logf("%d times more permits were held than there are, for %v at most", c.pools.gate.times, c.pools.gate.longest)
	assert.Less(c.t, c.guard.longest, c.options.Lease+leeway, "a hold outlives its lease")
	assert.Less(c.t, c.pools.gate.longest, c.options.Lease+leeway, "a permit outlives its lease")
}

// churn acquires and releases without end.
func (c *failoverSeries) churn(ctx context.Context, i int) {
	client := []*latchkey.Client{c.a, c.b}[i%2]
	for ctx.Err() == nil {
		k := kinds[rand.N(len(kinds))]
		lock := k.open(client, c.prefix+"churn"+k.name)
		hold, err := lock.Lock(ctx)
		if err != nil {
			rest(10 * time.Millisecond)
			continue
		}
		c.guard.stay(lock.Name(), hold, time.After(rand.N(3*time.Millisecond)))
		_ = hold.Unlock(context.Background()) // a hold that is lost returns an error
	}
}

// round is one failover.
func (c *failoverSeries) round(i int, lose func()) {
	name := fmt.Sprint(c.prefix, i)
	var staying, leaving []*heldLock
	for _, k := range kinds {
		staying = append(staying, c.stay(k, name+"stays"))
		leaving = append(leaving, c.stay(k, name+"leaves"))
	}
	others, leader, phase := c.others(name), c.election.leads(name+"election"), c.barrier.arrives(name+"phase")
	queue := c.pools.queue(name + "pool")
	c.replicate()
	var departures sync.WaitGroup
	for _, s := range leaving {
		departures.Go(func() { rest(rand.N(3 * time.Second)); s.leave() })
	}
	lose()
	departures.Wait()
	c.top.heal()
	whole := time.Now()
	for _, s := range staying {
		c.compare(s)
	}
	for _, s := range append(staying, leaving...) {
		next := rig.Await(c.t, c.options.Lease+soon, "the waiter for "+s.kind.name, s.next)
		require.NoError(c.t, next.err, s.kind.name)
		c.wait = max(c.wait, next.at.Sub(whole))
	}
	others()
	leader()
	phase()
	queue()
	c.barrier.wantProgress(whole)
	c.guard.wantGrant(c.t, whole)
}

// heldLock is a lock that is held while somebody else waits for it.
type heldLock struct {
	kind  kind
	hold  *latchkey.Hold
	leave func()
	gone  chan error // the result of the release
	next  <-chan acquisition
}

func (c *failoverSeries) stay(k kind, name string) *heldLock {
	name += k.name
	s := &heldLock{kind: k, gone: make(chan error, 1)}
	s.hold = c.insist(k.open(c.a, name))
	leave := make(chan time.Time)
	s.leave = sync.OnceFunc(func() { close(leave) })
	go func() {
		c.guard.stay(name, s.hold, leave)
		s.gone <- s.hold.Unlock(context.Background())
	}()
	next := make(chan acquisition, 1)
	s.next = next
	go func() {
		hold := c.insist(k.open(c.b, name))
		at, done := time.Now(), make(chan time.Time)
		close(done)
		c.guard.stay(name, hold, done)
		_ = hold.Unlock(context.Background())
		next <- acquisition{hold, nil, at}
	}()
	return s
}

// insist acquires, and retries as long as replicas are missing.
func (c *failoverSeries) insist(lock anyLock) *latchkey.Hold {
	for {
		hold, err := lock.Lock(c.t.Context())
		if err == nil {
			return hold
		}
		if c.t.Context().Err() != nil {
			return hold
		}
		rest(20 * time.Millisecond)
	}
}

// compare waits until what a holder knows agrees with the state of the server, at its next renewal
// at the latest.
func (c *failoverSeries) compare(s *heldLock) {
	c.holds++
	var known error
	rig.Eventually(c.t, c.options.Lease+soon, s.kind.name, func() error {
		if known = s.hold.Err(); known != nil {
			return nil //nolint:nilerr // it knows of the loss
		}
		i, err := s.kind.open(c.b, s.hold.Name()).Inspect(c.t.Context())
		if err != nil {
			return err
		}
		for _, h := range i.Holders {
			if h.Owner == s.hold.Owner() {
				return nil
			}
		}
		return errors.New("the holder does not know that it has lost the lock")
	})
	if known == nil {
		c.kept++
	} else {
		assert.ErrorIs(c.t, known, latchkey.ErrLost)
		c.told++
	}
	s.leave()
	if err := rig.Await(c.t, soon, "the release", s.gone); err != nil {
		assert.ErrorIs(c.t, err, latchkey.ErrNotHeld, s.kind.name)
	}
}

// others lets waiters for permits and for a latch go through a failover. The function that it
// returns ends their wait and checks that all of them return.
func (c *failoverSeries) others(name string) (end func()) {
	ctx := within(c.t, 3*time.Minute)
	sem, latch := c.a.NewSemaphore(name+"sem"), c.a.NewCountDownLatch(name+"latch")
	permits := c.a.NewPermitSemaphore(name + "permits")
	for _, set := range []func() (bool, error){
		func() (bool, error) { return sem.TrySetPermits(ctx, 1) },
		func() (bool, error) { return permits.TrySetPermits(ctx, 1) },
		func() (bool, error) { return latch.TrySetCount(ctx, 1) },
	} {
		_, err := set()
		require.NoError(c.t, err)
	}
	require.NoError(c.t, sem.Acquire(ctx))
	permit, err := permits.Acquire(ctx)
	require.NoError(c.t, err)
	back := make(chan error, 3)
	go func() { back <- c.again(ctx, func() error { return c.b.NewSemaphore(sem.Name()).Acquire(ctx) }) }()
	go func() {
		back <- c.again(ctx, func() error { _, err := c.b.NewPermitSemaphore(permits.Name()).Acquire(ctx); return err })
	}()
	go func() { back <- c.b.NewCountDownLatch(latch.Name()).Await(ctx) }()
	return func() {
		require.NoError(c.t, sem.Release(ctx))
		if err := permit.Release(ctx); err != nil {
			assert.ErrorIs(c.t, err, latchkey.ErrNotHeld)
		}
		_, err := latch.CountDown(ctx)
		require.NoError(c.t, err)
		for range 3 {
			assert.NoError(c.t, rig.Await(c.t, c.options.Lease+soon, "a waiter", back))
		}
	}
}

// again repeats an acquisition while replicas are missing.
func (c *failoverSeries) again(ctx context.Context, acquire func() error) error {
	for {
		err := acquire()
		if ctx.Err() != nil || !errors.Is(err, latchkey.ErrNotReplicated) {
			return err
		}
		rest(20 * time.Millisecond)
	}
}

// permitExcess records how often more permits are held than there are, and for how long.
type permitExcess struct {
	mu      sync.Mutex
	room    int
	inside  int
	since   time.Time // since when there are too many, or the zero time
	times   int
	longest time.Duration
}

// stay is inside until it is time to leave, or until permits are lost.
func (t *permitExcess) stay(permits []*latchkey.Permit, leave <-chan time.Time) {
	t.change(len(permits))
	defer t.change(-len(permits))
	select {
	case <-leave:
	case <-permits[0].Lost():
	case <-permits[len(permits)-1].Lost():
	}
}

func (t *permitExcess) change(by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside += by
	switch over := t.inside > t.room; {
	case over && t.since.IsZero():
		t.since, t.times = time.Now(), t.times+1
	case !over && !t.since.IsZero():
		t.longest, t.since = max(t.longest, time.Since(t.since)), time.Time{}
	}
}
