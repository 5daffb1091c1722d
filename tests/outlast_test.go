package tests

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Trouble that passes, for every kind of object.

// after is how long everything may take to go on.
const after = 2 * time.Second

// handed is an object of which one client has everything, and another waits for it.
type handed struct {
	name string
	// begin takes it with one client. It returns what waits for it with the other, and what lets
	// that go on.
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
					return errors.Join(hold.Err(), hold.Extend(ctx, defaultLease), hold.Unlock(ctx))
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
			require.NoError(t, s.Acquire(ctx))
			return func() error { return wants.NewSemaphore("semaphore").Acquire(ctx) }, func() error { return s.Release(ctx) }
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

// outlast checks that everything goes on when some trouble is over: holds are kept, waiters get
// what is released, and calls that were made in the meantime succeed.
func outlast(t *testing.T, has, wants *latchkey.Client, trouble func() (repair func())) {
	t.Helper()
	ctx := within(t, 3*soon)
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
	repair := trouble()
	gone := make(chan error, len(all))
	goingOn := rig.Goroutines(t)
	for _, p := range all {
		goingOn.Go(func() {
			err := p.goOn()
			assert.NoError(t, err, "%s", p.name)
			gone <- err
		})
	}
	rest(300 * time.Millisecond)
	repair()
	repaired := time.Now()
	for range all {
		rig.Await(t, soon, "what goes on", gone)
	}
	for _, p := range all {
		assert.NoError(t, rig.Await(t, soon, "the waiter for "+p.name, p.waited), p.name)
	}
	assert.Less(t, time.Since(repaired), soon, "nobody waits for the end of a lease")
}

// The server answers everything with a reply that is no refusal.
func TestOutlast_replies(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Private)
	for class, text := range oneReplyOfEach {
		if class == "refused" {
			continue
		}
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			tap := rig.NewTap(t, server)
			has, wants := connectVia(t, server, tap.Addr()), connectVia(t, server, tap.Addr())
			outlast(t, has, wants, func() (repair func()) {
				return tap.Refuse(rig.Named("EVAL", "EVALSHA", "SET"), text)
			})
		})
	}
}

// The disk of the server is gone for a while.
func TestOutlast_a_disk_that_fails(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process, rig.Settings)
	notInCluster(t, "one server")
	server := rig.Fresh(t, "--save", "3600 1")
	admin := rig.NewAdmin(t, server)
	has, wants := connect(t, server), connect(t, server)
	outlast(t, has, wants, func() (repair func()) {
		dir, err := admin.Do("CONFIG", "GET", "dir").AsStrMap()
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(dir["dir"]))
		admin.Do("BGSAVE")
		raw := server.Raw(t)
		rig.Eventually(t, soon, "MISCONF", func() error {
			if raw.Do(t.Context(), rig.Build(raw, "SET", "probe", "")).Error() == nil {
				return errors.New("it still writes")
			}
			return nil
		})
		return func() { admin.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no") }
	})
}
