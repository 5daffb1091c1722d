package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A fixed address leads to a master. A replica takes over: new connections lead to it, and those that are open stay
// with the former master, which is a replica now and refuses what changes anything. No client is told.
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
	client, closeAll, err := borrow(option, options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = closeAll(within(t, after)) })
	return client
}

// swap makes the two servers change roles, with all data. It returns the new master.
func (f *fixedEndpoint) swap() *rig.Server { return f.pair.Swap(0, f.tap.RedirectNew) }

// after is how long everything may take to go on.
const after = 2 * time.Second

// handed is an object of which one client has everything, and another waits for it.
type handed struct {
	name string
	// begin takes it with one client. It returns what waits for it with the other, and what lets that go on.
	begin func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error)
}

func handedObjects() (all []handed) {
	lock := func(name string, open, openToo func(*latchkey.Client) latchkey.Locker) handed {
		return handed{name, func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			hold := mustLock(t, open(has))
			return func() error {
					next, err := openToo(wants).Lock(ctx)
					return errors.Join(err, ifAny(next != nil, func() error { return next.Unlock(ctx) }))
				}, func() error {
					return errors.Join(hold.Err(), hold.Extend(ctx, latchkey.DefaultLease), hold.Unlock(ctx))
				}
		}}
	}
	for _, k := range kinds {
		open := func(c *latchkey.Client) latchkey.Locker { return k.open(c, k.name) }
		all = append(all, lock(k.name, open, open))
	}
	return append(all,
		lock("ReadLock", func(c *latchkey.Client) latchkey.Locker { return c.NewRWLock("rw").Reader() },
			func(c *latchkey.Client) latchkey.Locker { return c.NewRWLock("rw").Writer() }),
		lock("MultiLock", func(c *latchkey.Client) latchkey.Locker {
			return latchkey.NewMultiLock(c.NewLock("m1"), c.NewLock("m2"))
		}, func(c *latchkey.Client) latchkey.Locker { return c.NewLock("m2") }),
		handed{"Semaphore", func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			s := has.NewSemaphore("semaphore")
			must(t)(s.TrySetPermits(ctx, 1))
			require.NoError(t, s.Acquire(ctx, 1))
			return func() error { return wants.NewSemaphore("semaphore").Acquire(ctx, 1) }, func() error { return s.Release(ctx, 1) }
		}},
		handed{"PermitSemaphore", func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			s := has.NewPermitSemaphore("permits")
			must(t)(s.TrySetPermits(ctx, 1))
			permit, err := s.Acquire(ctx)
			require.NoError(t, err)
			return func() error { _, err := wants.NewPermitSemaphore("permits").Acquire(ctx); return err },
				func() error { return permit.Release(ctx) }
		}},
		handed{"FairSemaphore", func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			s := has.NewFairSemaphore("fair permits")
			must(t)(s.TrySetPermits(ctx, 1))
			permit, err := s.Acquire(ctx)
			require.NoError(t, err)
			return func() error { _, err := wants.NewFairSemaphore("fair permits").Acquire(ctx); return err },
				func() error { return permit.Release(ctx) }
		}},
		handed{"CountDownLatch", func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			l := has.NewCountDownLatch("latch")
			must(t)(l.TrySetCount(ctx, 1))
			return func() error { return wants.NewCountDownLatch("latch").Await(ctx) },
				func() error { _, err := l.CountDown(ctx); return err }
		}},
		handed{"Barrier", func(ctx context.Context, _ *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			arrive := func(c *latchkey.Client) func() error {
				return func() error { _, err := c.NewBarrier("barrier", 2).Await(ctx); return err }
			}
			return arrive(wants), arrive(has)
		}},
		handed{"Election", func(ctx context.Context, t *testing.T, has, wants *latchkey.Client) (wait, goOn func() error) {
			led, err := has.NewElection("election").Campaign(ctx, "first")
			require.NoError(t, err)
			return func() error { _, err := wants.NewElection("election").Campaign(ctx, "second"); return err },
				func() error { return errors.Join(led.Proclaim(ctx, "still first"), led.Resign(ctx)) }
		}},
	)
}

// must returns a function that fails the test unless a call has set something.
func must(t *testing.T) func(set bool, err error) {
	t.Helper()
	return func(set bool, err error) {
		t.Helper()
		require.NoError(t, err)
		require.True(t, set)
	}
}

func ifAny(there bool, do func() error) error {
	if !there {
		return nil
	}
	return do()
}

// Everything goes on when the master behind a fixed address changes: holds that the new master has survive, waiters
// get what is released, and calls succeed.
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
	ctx := within(t, soon)
	type pending struct {
		handed

		waited chan error
		goOn   func() error
	}
	var all []pending
	for _, object := range handedObjects() {
		wait, goOn := object.begin(ctx, t, has, wants)
		p := pending{object, make(chan error, 1), goOn}
		go func() { p.waited <- wait() }()
		all = append(all, p)
	}
	rest(100 * time.Millisecond) // most of them wait by then
	next := f.swap()
	changed := time.Now()
	gone := make(chan error, len(all))
	for _, p := range all {
		go func() {
			err := p.goOn()
			assert.NoError(t, err, "%s", p.name)
			gone <- err
		}()
	}
	for range all {
		rig.Await(t, soon, "what goes on", gone)
	}
	for _, p := range all {
		assert.NoError(t, rig.Await(t, soon, "the waiter for "+p.name, p.waited), p.name)
	}
	assert.Less(t, time.Since(changed), after+leeway)
	assert.Positive(t, rig.NewAdmin(t, next).Connections())
}

// The address leads to the replica for a while. The client opens new connections until one leads to the master, but not
// in a tight loop.
func TestFixedEndpoint_that_changes_late(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	f := newFixedEndpoint(t)
	client := f.client(t, false, latchkey.Options{})
	mustUnlock(t, mustLock(t, client.NewLock("late")))
	next := f.pair.Swap(0, func(*rig.Server) {})
	before, began := f.tap.Accepted(), time.Now()
	waiter := lockInBackground(within(t, soon), client.NewLock("late"))
	rest(1200 * time.Millisecond)
	opened, took := f.tap.Accepted()-before, time.Since(began)
	assert.Positive(t, opened)
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
	rig.Eventually(t, soon, "an extension", func() error { return hold.Extend(t.Context(), latchkey.DefaultLease) })
	mustUnlock(t, hold)
	rig.Eventually(t, soon, "the next hold", func() error {
		next, err := lock.TryLock(t.Context())
		if err == nil {
			mustUnlock(t, next)
		}
		return err
	})
}
