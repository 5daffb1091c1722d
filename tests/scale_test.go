package tests

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// many is the number of holds and of waiters that a client must handle with ease.
const many = 10_000

// A client renews ten thousand holds in batches for several leases, with the same few goroutines as
// one hold.
func TestManyHoldsAreRenewedTogether(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Stats, rig.Speed)
	const lease = 10 * time.Second // long enough that a busy machine renews in time
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	client := connect(t, server, latchkey.Options{Lease: lease})
	late := rig.WatchLateness(nil)
	first := mustLock(t, client.NewLock(inOneSlot("the first")))
	goroutines := runtime.NumGoroutine()

	var mu sync.Mutex
	holds := []*latchkey.Hold{first}
	eachName(t, many-1, 64, func(name string) {
		hold, err := client.NewLock(inOneSlot(name)).Lock(t.Context())
		if !assert.NoError(t, err) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		holds = append(holds, hold)
	})
	rig.Eventually(t, soon, "no goroutines for holds", func() error { // those of acquisitions and of other tests end soon
		if now := runtime.NumGoroutine(); now > goroutines+10 {
			return fmt.Errorf("%d goroutines for 10 000 holds, %d for one", now, goroutines)
		}
		return nil
	})

	before, start := admin.CommandStats(), time.Now()
	rest(lease)
	scripts, took := admin.Since(before)["evalsha"], time.Since(start)
	periods := took.Seconds() / (lease.Seconds() / 3)
	t.Logf("%d holds: %d renewal scripts in %v, %.1f holds renewed by one, %d goroutines as with one hold (%d)",
		many, scripts, took.Round(time.Millisecond), many*periods/float64(scripts), runtime.NumGoroutine(), goroutines)
	assert.Less(t, float64(scripts), periods*many/100*2, "they are not batched")
	lost := 0
	for _, hold := range holds {
		if hold.Err() != nil {
			lost++
		}
	}
	require.Zero(t, lost, "%d of %d lost, on a machine that was %v late", lost, len(holds), late().Round(time.Millisecond))
	assert.Equal(t, int64(many), admin.Int("DBSIZE"))
	unlockAll(t, holds)
	assert.Zero(t, admin.Int("DBSIZE"))
}

// inOneSlot maps names to one slot of a cluster, because a script can renew only holds of one slot.
func inOneSlot(name string) string {
	if rig.Shared().Clustered() {
		return "{slot}" + name
	}
	return name
}

func unlockAll(t *testing.T, holds []*latchkey.Hold) {
	t.Helper()
	each := make(chan *latchkey.Hold)
	var all sync.WaitGroup
	var failed atomic.Int64
	for range 64 {
		all.Go(func() {
			for hold := range each {
				if hold.Unlock(t.Context()) != nil {
					failed.Add(1)
				}
			}
		})
	}
	for _, hold := range holds {
		each <- hold
	}
	close(each)
	all.Wait()
	assert.Zero(t, failed.Load(), "holds of %d that could not be released", len(holds))
}

// Ten thousand waiters of one client cost the server as much as one: one subscription, the same
// connections, the same commands. Each of them gets its turn.
func TestManyWaitersCostWhatOneCosts(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Stats, rig.Speed)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	holder := mustLock(t, connect(t, server).NewLock("wanted"))
	lock := connect(t, server).NewLock("wanted")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	alone := lockInBackground(ctx, lock)
	awaitWaiter(t, admin, "wanted")
	one := idleCost(admin)
	oneHeap := heapInUse()

	served := make(chan acquisition, many)
	for range many - 1 {
		go func() {
			hold, err := lock.Lock(ctx)
			served <- acquisition{hold, err, time.Now()}
			if err == nil {
				_ = hold.Unlock(ctx)
			}
		}()
	}
	rest(time.Second) // by then they are all in line; if not, that only makes them cheaper
	all := idleCost(admin)
	t.Logf("idle cost of one waiter: %v; of %d: %v; heap per waiter %d bytes (with the race detector, if it is on)",
		one, many, all, (heapInUse()-oneHeap)/many)
	assert.LessOrEqual(t, all.perSecond, one.perSecond+1)
	assert.LessOrEqual(t, all.connections, one.connections)
	assert.Equal(t, int64(1), all.subscriptions)

	start := time.Now()
	mustUnlock(t, holder)
	got := rig.Await(t, soon, "the first waiter", alone)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
	for range many - 1 {
		require.NoError(t, rig.Await(t, 30*time.Second, "the next waiter", served).err)
	}
	t.Logf("all of them served in %v", time.Since(start).Round(time.Millisecond))
}

// cost is the load that clients that only wait put on a server.
type cost struct {
	perSecond     float64 // commands
	pings         float64 // keep-alives of the connections, not included in perSecond
	connections   int
	subscriptions int64
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f commands/s (and %.1f keep-alive pings), %d connections, %d subscription",
		c.perSecond, c.pings, c.connections, c.subscriptions)
}

// idleCost counts the commands of a period: the waiters' attempts, the renewals of the holder, the
// heartbeats of the subscription.
func idleCost(admin *rig.Admin) cost {
	const during = 3 * time.Second
	monitor := admin.Watch()
	rest(during)
	commands := monitor.Stop()
	pings := 0
	for _, command := range commands {
		if strings.HasPrefix(command, `"PING"`) {
			pings++
		}
	}
	return cost{
		perSecond:     float64(len(commands)-pings) / during.Seconds(),
		pings:         float64(pings) / during.Seconds(),
		connections:   admin.Connections(),
		subscriptions: int64(len(admin.Channels("latchkey:{"))) + admin.Subscribers(channelOf("wanted")),
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// Several clients contend: each release costs a bounded number of commands, however many goroutines
// wait.
func TestCommandsPerAcquisitionAreBounded(t *testing.T) {
	rig.Need(t, rig.Stats)
	eachKind(t, func(t *testing.T, k kind) {
		const clients, waiters, passes = 5, 40, 2
		server := rig.Fresh(t)
		admin := rig.NewAdmin(t, server)
		all := rig.Goroutines(t)
		monitor := admin.Watch()
		for range clients {
			lock := k.open(connect(t, server), "herd")
			for range waiters {
				all.Go(func() {
					for range passes {
						assert.NoError(t, lock.Do(t.Context(), func(context.Context) error { return nil }))
					}
				})
			}
		}
		all.Wait()
		commands := len(monitor.Stop())
		each := float64(commands) / (clients * waiters * passes)
		t.Logf("%d acquisitions by %d goroutines of %d clients: %.2f commands each",
			clients*waiters*passes, clients*waiters, clients, each)
		assert.Less(t, each, 2+2*float64(clients), "a lock, an unlock, and for each client an attempt or two")
	}, messages)
}

// Names that are used once leave nothing behind in the client.
func TestManyNamesLeaveNothing(t *testing.T) {
	rig.Need(t, rig.Speed)
	const names, noise = 2000, 64 << 10
	client := connect(t, rig.Shared())
	use := func(name string) {
		hold, err := client.NewLock(name).Lock(t.Context())
		if assert.NoError(t, err) {
			assert.NoError(t, hold.Unlock(t.Context()))
		}
	}
	eachName(t, names, 64, use)
	before := heapInUse()
	eachName(t, names, 64, func(name string) { use("other " + name) })
	grown := int64(heapInUse()) - int64(before)
	t.Logf("the heap grew by %d bytes over %d new names", grown, names)
	assert.Less(t, grown, int64(names*50+noise), "bytes for each name")
}
