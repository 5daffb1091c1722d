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

// A fixed address leads to a master. A replica takes over: new connections lead to it, and those
// that are open stay with the former master, which is a replica now and refuses what changes
// anything. No client is told.
type fixedEndpoint struct {
	pair *rig.Replicated
	tap  *rig.Tap
}

func newFixedEndpoint(t *testing.T) *fixedEndpoint {
	t.Helper()
	pair := rig.NewReplicated(t, 1, 0)
	return &fixedEndpoint{pair, rig.NewTap(t, pair.Master)}
}

// client opens a client, or borrows one.
func (f *fixedEndpoint) client(t *testing.T, borrowed bool, options latchkey.Options) *latchkey.Client {
	t.Helper()
	if !borrowed {
		return connectVia(t, f.pair.Master, f.tap.Addr(), options)
	}
	option := f.pair.Master.Options(f.tap.Addr())
	option.PipelineMultiplex = 0 // as most programs have it
	return lent(t, option, options)
}

// swap makes the two servers change roles, with all data.
func (f *fixedEndpoint) swap() {
	next := f.pair.Swap(0, f.tap.RedirectNew)
	f.pair.Master, f.pair.Replicas[0] = next, f.pair.Master
}

// Everything goes on when the master behind a fixed address changes: holds that the new master has
// survive, waiters get what is released, and calls succeed. So it does when the roles change back.
func TestFixedEndpoint(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	for name, borrowed := range map[string]bool{"opened": false, "borrowed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goesOn(t, borrowed)
		})
	}
}

func goesOn(t *testing.T, borrowed bool) {
	t.Helper()
	f := newFixedEndpoint(t)
	has, wants := f.client(t, borrowed, latchkey.Options{}), f.client(t, borrowed, latchkey.Options{})
	outlast(t, has, wants, func() (repair func()) {
		f.swap()
		return func() {}
	})
	assert.Positive(t, rig.NewAdmin(t, f.pair.Master).Connections())

	f.swap() // back again
	changed := time.Now()
	for _, client := range []*latchkey.Client{has, wants} {
		mustUnlock(t, mustLock(t, client.NewLock("back again")))
	}
	assert.Less(t, time.Since(changed), after+leeway)
}

// The address leads to the replica for a while. The client opens new connections until one leads to
// the master, but not in a tight loop.
func TestFixedEndpoint_that_changes_late(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	f := newFixedEndpoint(t)
	client := f.client(t, false, latchkey.Options{})
	mustUnlock(t, mustLock(t, client.NewLock("late")))
	next := f.pair.Swap(0, func(*rig.Server) {})
	before, began := f.tap.Accepted(), time.Now()
	waiter := lockInBackground(within(t, soon), client.NewLock("late"))
	rig.Eventually(t, soon, "a new connection", func() error {
		if f.tap.Accepted() == before {
			return errors.New("none")
		}
		return nil
	})
	rest(1200 * time.Millisecond)
	opened, took := f.tap.Accepted()-before, time.Since(began)
	assert.LessOrEqual(t, opened, 2*(int(took/time.Second)+1), "for commands and for messages, in %v", took)
	staysPending(t, waiter)
	f.tap.RedirectNew(next)
	changed := time.Now()
	got := rig.Await(t, soon, "the lock", waiter)
	require.NoError(t, got.err)
	assert.Less(t, got.at.Sub(changed), after+leeway)
	mustUnlock(t, got.hold)
}

// A member of a RedLock behind a fixed address counts again when the master has changed.
func TestFixedEndpoint_of_a_member(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology, rig.Process)
	f, others := newFixedEndpoint(t), startMasters(t, 2)
	members := append(others.mutexes(t, "member"), f.client(t, false, latchkey.Options{}).NewMutex("member"))
	lock := latchkey.NewRedLock(latchkey.RedLockOptions{}, members...)
	hold := mustLock(t, lock)
	f.swap()
	others.servers[0].Kill(t) // so the member is needed
	rig.Eventually(t, soon, "an extension", func() error { return hold.Extend(t.Context(), defaultLease) })
	mustUnlock(t, hold)
	rig.Eventually(t, soon, "the next hold", func() error {
		next, err := lock.TryLock(t.Context())
		if err == nil {
			mustUnlock(t, next)
		}
		return err
	})
}

// adrift makes the former master a replica that receives nothing from the next one, and returns a
// client of that one.
func (f *fixedEndpoint) adrift(t *testing.T) (next *latchkey.Client) {
	t.Helper()
	former := rig.NewAdmin(t, f.pair.Master)
	f.swap()
	former.Do("REPLICAOF", "127.0.0.1", "1")
	return connect(t, f.pair.Master)
}

// A client that only awaits a latch does not stay with a former master that has lost its own.
func TestFixedEndpoint_awaited(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	for how, borrowed := range map[string]bool{"opened": false, "borrowed": true} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f, ctx := newFixedEndpoint(t), within(t, 4*soon)
			watcher := f.client(t, borrowed, latchkey.Options{})
			latch := watcher.NewCountDownLatch("latch")
			require.NoError(t, firstOf(latch.TrySetCount(ctx, 1)))
			awaited := make(chan error, 1)
			go func() { awaited <- latch.Await(ctx) }()
			awaitWaiting(t, watcher, latchkey.KindLatch, 1)
			require.NoError(t, firstOf(f.adrift(t).NewCountDownLatch("latch").CountDown(ctx)))
			assert.NoError(t, rig.Await(t, soon, "the latch", awaited))
		})
	}
}

// What a client reports comes from the master, also if it sends nothing else; so does the refusal
// of permits.
func TestFixedEndpoint_reports(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	f, ctx := newFixedEndpoint(t), within(t, 4*soon)
	set := func(c *latchkey.Client, n int) {
		require.NoError(t, c.NewSemaphore("semaphore").SetPermits(ctx, n))
		require.NoError(t, c.NewPermitSemaphore("permits").SetPermits(ctx, n))
	}
	setter := connect(t, f.pair.Master)
	require.NoError(t, firstOf(setter.NewCountDownLatch("latch").TrySetCount(ctx, 3)))
	set(setter, 0)
	reports := map[string]func(c *latchkey.Client) (int, error){
		"latch": func(c *latchkey.Client) (int, error) { return c.NewCountDownLatch("latch").Count(ctx) },
		"barrier": func(c *latchkey.Client) (int, error) {
			state, err := c.NewBarrier("barrier", 2).State(ctx)
			return state.Parties, err
		},
		"semaphore": func(c *latchkey.Client) (int, error) {
			stats, err := statsOf(ctx, c.NewSemaphore("semaphore"))
			return stats.Total, err
		},
		"permits": func(c *latchkey.Client) (int, error) {
			stats, err := statsOf(ctx, c.NewPermitSemaphore("permits"))
			return stats.Available + stats.HolderCount, err
		},
		"attempt at a semaphore": func(c *latchkey.Client) (int, error) { return 2, c.NewSemaphore("semaphore").TryAcquire(ctx) },
		"attempt at permits": func(c *latchkey.Client) (int, error) {
			return 2, firstOf(c.NewPermitSemaphore("permits").TryAcquire(ctx))
		},
	}
	clients := map[string]*latchkey.Client{}
	for what := range reports {
		clients[what] = f.client(t, false, latchkey.Options{})
	}

	next := f.adrift(t)
	require.NoError(t, firstOf(next.NewCountDownLatch("latch").CountDown(ctx)))
	go func() { _, _ = next.NewBarrier("barrier", 2).Await(ctx) }()
	awaitWaiting(t, next, latchkey.KindBarrier, 1)
	set(next, 2)
	for what, report := range reports {
		n, err := report(clients[what])
		require.NoError(t, err, what)
		assert.Equal(t, 2, n, what)
	}
}
