package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// requireBusy checks that an error says that somebody else holds the lock, and nothing about the
// server.
func requireBusy(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.NotErrorIs(t, err, latchkey.ErrUnavailable)
}

// requireUnavailable checks that an error says that the server is unavailable, and not that
// somebody else holds the lock.
func requireUnavailable(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, latchkey.ErrUnavailable)
	assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
}

// way is a way to acquire something, of any kind.
type way struct {
	name string
	wait func(ctx context.Context, options ...latchkey.WaitOption) error
	try  func(ctx context.Context) error // or nil
}

// waysThrough returns all the ways to acquire something through a client. The other client holds
// all of it.
func waysThrough(t *testing.T, client, other *latchkey.Client) []way {
	t.Helper()
	ctx := within(t, soon)
	var ways []way
	for _, k := range append(kinds[:len(kinds):len(kinds)], readKind) {
		if k.name == readKind.name {
			mustLock(t, other.NewRWLock(k.name).Writer())
		} else {
			mustLock(t, k.open(other, k.name))
		}
		lock := k.open(client, k.name)
		ways = append(ways, way{k.name,
			func(ctx context.Context, options ...latchkey.WaitOption) error {
				_, err := lock.Lock(ctx, as(options, func(o latchkey.WaitOption) latchkey.LockOption { return o })...)
				return err
			},
			func(ctx context.Context) error { _, err := lock.TryLock(ctx); return err },
		})
	}
	for _, set := range []func(context.Context, int, ...latchkey.SetOption) (bool, error){
		other.NewSemaphore("semaphore").TrySetPermits, other.NewPermitSemaphore("permits").TrySetPermits,
	} {
		_, err := set(ctx, 1)
		require.NoError(t, err)
	}
	require.NoError(t, other.NewSemaphore("semaphore").Acquire(ctx))
	_, err := other.NewPermitSemaphore("permits").Acquire(ctx)
	require.NoError(t, err)
	_, err = other.NewCountDownLatch("latch").TrySetCount(ctx, 1)
	require.NoError(t, err)
	semaphore, permits, latch := client.NewSemaphore("semaphore"), client.NewPermitSemaphore("permits"), client.NewCountDownLatch("latch")
	return append(ways,
		way{"Semaphore", func(ctx context.Context, options ...latchkey.WaitOption) error {
			return semaphore.Acquire(ctx, as(options, func(o latchkey.WaitOption) latchkey.AcquireOption { return o })...)
		}, func(ctx context.Context) error { return semaphore.TryAcquire(ctx) }},
		way{"PermitSemaphore", func(ctx context.Context, options ...latchkey.WaitOption) error {
			_, err := permits.Acquire(ctx, as(options, func(o latchkey.WaitOption) latchkey.PermitOption { return o })...)
			return err
		}, func(ctx context.Context) error { _, err := permits.TryAcquire(ctx); return err }},
		way{"CountDownLatch", func(ctx context.Context, options ...latchkey.WaitOption) error {
			return latch.Await(ctx, as(options, func(o latchkey.WaitOption) latchkey.AwaitOption { return o })...)
		}, nil},
	)
}

// as converts the options of one family of calls to those of another.
func as[T any](options []latchkey.WaitOption, one func(latchkey.WaitOption) T) []T {
	all := make([]T, len(options))
	for i, o := range options {
		all[i] = one(o)
	}
	return all
}

// outages are the ways in which a server can fail to answer.
var outages = map[string]struct {
	begin func(*testing.T, *rig.Server)
}{
	"dead":   {func(t *testing.T, s *rig.Server) { s.Kill(t) }},
	"silent": {func(t *testing.T, s *rig.Server) { s.Pause(t); t.Cleanup(func() { s.Resume(t) }) }},
}

// For every kind, the errors distinguish a busy lock from a dead server, however the call is
// bounded, and even in the middle of a wait: the last attempt counts.
func TestUnavailableIsNoContention(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	const wait = time.Second
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			client := connect(t, server, latchkey.Options{RetryBudget: time.Second, Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}})
			ways := waysThrough(t, client, connect(t, server, patient))
			for _, w := range ways {
				if w.try != nil {
					_ = refused(t, func(latchkey.WaitOption) error { return w.try(t.Context()) })
				}
				err := refused(t, func(wait latchkey.WaitOption) error { return w.wait(t.Context(), wait) })
				assert.NotErrorIs(t, err, context.DeadlineExceeded, "%s: the caller's context goes on", w.name)
				limit := wait / 10
				err = refused(t, func(latchkey.WaitOption) error {
					limit *= 2
					return w.wait(within(t, limit))
				})
				assert.ErrorIs(t, err, context.DeadlineExceeded, w.name)
			}
			outage.begin(t, server)
			for _, w := range ways {
				t.Run(w.name, func(t *testing.T) {
					t.Parallel() // a silent connection is closed after a while, and then nothing is sent
					if w.try != nil {
						err := w.try(t.Context())
						requireUnavailable(t, err)
						assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context goes on")
					}
					err := w.wait(t.Context(), latchkey.Wait(wait))
					requireUnavailable(t, err)
					assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context goes on")
					err = w.wait(within(t, wait))
					requireUnavailable(t, err)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(wait, cancel)
					err = w.wait(ctx)
					requireUnavailable(t, err)
					assert.ErrorIs(t, err, context.Canceled)
				})
			}
		})
	}
}

// A wait that is busy at first and ends with a dead server returns ErrUnavailable, even to calls
// that wait in line behind others of their client and never sent anything.
func TestUnavailableInTheMiddleOfAWait(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	const waiters = 3
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			client := connect(t, server, latchkey.Options{RetryBudget: time.Second, Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}})
			ways := waysThrough(t, client, connect(t, server, patient))
			results := make(chan error, waiters*len(ways))
			for _, w := range ways {
				for range waiters {
					go func() { results <- w.wait(context.Background(), latchkey.Wait(2*time.Second)) }()
				}
			}
			rest(300 * time.Millisecond) // by then the lock is known to be busy
			outage.begin(t, server)
			for range cap(results) {
				requireUnavailable(t, rig.Await(t, soon, "a waiter", results))
			}
		})
	}
}

// A lock that this client holds counts as busy, whatever happens to the server: the hold lasts as
// long as its lease.
func TestHeldHereIsBusyWithoutAServer(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	options := patient
	options.RetryBudget = 500 * time.Millisecond
	client := connect(t, server, options)
	hold := mustLock(t, client.NewLock("here"))
	server.Kill(t)
	_, err := client.NewLock("here").Lock(t.Context(), latchkey.Wait(200*time.Millisecond))
	requireBusy(t, err)
	require.NoError(t, hold.Err())
	_, err = client.NewLock("here").TryLock(t.Context())
	requireUnavailable(t, err)
}

// ErrClosed stands alone, both in calls after Close and in calls in flight.
func TestClosedIsNeitherBusyNorUnavailable(t *testing.T) {
	server := singleServer(t)
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	ways := waysThrough(t, client, connect(t, server, patient))
	under := make(chan error, len(ways))
	for _, w := range ways {
		go func() { under <- w.wait(context.Background()) }()
	}
	rest(200 * time.Millisecond)
	require.NoError(t, closeAll(within(t, soon)))
	alone := func(err error) {
		t.Helper()
		assert.ErrorIs(t, err, latchkey.ErrClosed)
		for _, other := range []error{latchkey.ErrNotAcquired, latchkey.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
			assert.NotErrorIs(t, err, other)
		}
	}
	for _, w := range ways {
		alone(rig.Await(t, soon, "a waiter", under))
		alone(w.wait(t.Context()))
		if w.try != nil {
			alone(w.try(t.Context()))
		}
	}
}

// Operations that acquire nothing return the same error, joined with ErrUnknownOutcome if they
// change something.
func TestUnavailableToAllOperations(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connect(t, server, latchkey.Options{RetryBudget: time.Second, Lease: time.Minute})
	ctx := t.Context()
	lock, rw := client.NewLock("lock"), client.NewRWLock("rw")
	hold, other, write := mustLock(t, lock), mustLock(t, client.NewLock("other")), mustLock(t, rw.Writer())
	s, p, l := client.NewSemaphore("s"), client.NewPermitSemaphore("p"), client.NewCountDownLatch("l")
	server.Pause(t)
	t.Cleanup(func() { server.Resume(t) })
	queries := map[string]func() error{
		"Inspect":        func() error { return firstOf(lock.Inspect(ctx)) },
		"Client.Inspect": func() error { return firstOf(client.Inspect(ctx, "lock")) },
		"Waiters":        func() error { return firstOf(client.NewFairLock("fair").Waiters(ctx)) },
		"permit's lease": func() error { return firstOf(p.RemainingLease(ctx, "0123456789abcdef0123456789abcdef")) },
		"Count":          func() error { return firstOf(l.Count(ctx)) },
		"Delete latch":   func() error { return firstOf(l.Delete(ctx)) },
		"TrySetCount":    func() error { return firstOf(l.TrySetCount(ctx, 1)) },
		"Check":          func() error { return client.Check(ctx) },
	}
	changes := map[string]func() error{
		"ForceUnlock":   func() error { return firstOf(lock.ForceUnlock(ctx)) },
		"Extend":        func() error { return hold.Extend(ctx, time.Hour) },
		"Unlock":        func() error { return other.Unlock(ctx) },
		"Downgrade":     func() error { return firstOf(write.Downgrade(ctx)) },
		"Release":       func() error { return s.Release(ctx) },
		"TrySetPermits": func() error { return firstOf(s.TrySetPermits(ctx, 1)) },
		"SetTTL":        func() error { return firstOf(s.SetTTL(ctx, time.Hour)) },
		"Drain":         func() error { return firstOf(s.Drain(ctx)) },
		"CountDown":     func() error { return firstOf(l.CountDown(ctx)) },
		"permit's SetLease": func() error {
			return p.SetLease(ctx, "0123456789abcdef0123456789abcdef", time.Minute)
		},
	}
	// All at once: a silent connection is closed after a while, and then nothing is sent.
	told := map[string]chan error{}
	for _, all := range []map[string]func() error{queries, changes} {
		for name, ask := range all {
			answer := make(chan error, 1)
			told[name] = answer
			go func() { answer <- ask() }()
		}
	}
	for name, answer := range told {
		err := rig.Await(t, soon, name, answer)
		requireUnavailable(t, err)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, name)
		if changes[name] != nil && name != "ForceUnlock" { // which only queries first
			assert.ErrorIs(t, err, latchkey.ErrUnknownOutcome, name)
		}
	}
}

// A caller that repeats the work when the server is unavailable must not do it twice: if the
// release after the work fails, the error is not ErrUnavailable.
func TestReleaseAfterTheWorkIsNotUnavailable(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connect(t, server, latchkey.Options{RetryBudget: time.Second})
	permits := client.NewPermitSemaphore("permits")
	require.NoError(t, connect(t, server, persistent).NewPermitSemaphore("permits").SetPermits(t.Context(), 1))
	t.Cleanup(func() { server.Resume(t) })
	ran := 0
	work := func(context.Context) error { ran++; server.Pause(t); return nil }
	for _, do := range []func() error{
		func() error { return client.NewLock("lock").Do(t.Context(), work) },
		func() error { return permits.Do(t.Context(), work) },
	} {
		err := do()
		assert.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		assert.NotErrorIs(t, err, latchkey.ErrUnavailable)
		server.Resume(t)
	}
	assert.Equal(t, 2, ran)
	server.Pause(t)
	err := client.NewLock("other").Do(t.Context(), work, latchkey.Wait(time.Second))
	requireUnavailable(t, err)
	assert.Equal(t, 2, ran, "without the lock there is no work")
}

// A process that has a permit, or reads, is told of an outage as others are: what it holds keeps
// nobody out.
func TestOutageBesideAHoldThatKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connect(t, server, latchkey.Options{RetryBudget: soon, Lease: time.Minute})
	ctx := t.Context()
	pool, fair, reader := client.NewPermitSemaphore("p"), client.NewFairSemaphore("f"), client.NewRWLock("rw").Reader()
	require.NoError(t, pool.SetPermits(ctx, 5))
	require.NoError(t, fair.SetPermits(ctx, 5))
	calls := map[string]func(options ...latchkey.WaitOption) error{
		"PermitSemaphore": func(o ...latchkey.WaitOption) error { return firstOf(pool.Acquire(ctx, permitOptions(o)...)) },
		"FairSemaphore":   func(o ...latchkey.WaitOption) error { return firstOf(fair.Acquire(ctx, permitOptions(o)...)) },
		"Reader": func(o ...latchkey.WaitOption) error {
			options := []latchkey.LockOption{latchkey.As(client.NewOwner())} // which reads along with nobody
			for _, each := range o {
				options = append(options, each)
			}
			return firstOf(reader.Lock(ctx, options...))
		},
	}
	for what, call := range calls {
		require.NoError(t, call(), what)
	}
	server.Pause(t)
	t.Cleanup(func() { server.Resume(t) })
	for what, call := range calls {
		err := call(latchkey.Wait(time.Second / 2))
		require.Error(t, err, what)
		requireUnavailable(t, err)
	}
}
