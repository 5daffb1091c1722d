package tests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// These are answers that are no errors: nobody leads, and a lock was not held.
var (
	errNobody = errors.New("nobody leads")
	errFree   = errors.New("not held")
)

// question is a call about an object that the master has and the replica does not.
type question struct {
	name string
	ask  func(context.Context) error
	// The answer of a master without data. If it is nil, the call cannot be repeated.
	truth error
}

// A server with objects becomes a replica of an empty one, as after a failover in which the former
// master restarts without data. The client is still connected to it. No call may return an error
// that says that the object is gone: the next master has it. When the same server becomes a master,
// the same calls return that error.
func TestReadOnlyReplica_does_not_say_what_is_gone(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings, rig.Process)
	notInCluster(t, "a replica of a cluster sends clients to its master")
	master, server := rig.Fresh(t, "--repl-diskless-sync-delay", "0"), rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	// The leases outlast the test on any machine.
	options := latchkey.Options{RetryBudget: 2 * time.Second, Tuning: latchkey.Tuning{PollCeiling: 300 * time.Millisecond}, Lease: time.Hour}
	var all []question
	for _, about := range []func(*testing.T, func() *latchkey.Client) []question{
		aboutLocks, aboutReentry, aboutReadWriteLocks, aboutSemaphores, aboutPermits, aboutLatches, aboutElections, aboutBarriers, aboutWaiters,
		aboutRateLimiters,
	} {
		all = append(all, about(t, func() *latchkey.Client { return connect(t, server, options) })...)
	}

	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	admin.Do("REPLICAOF", host, port)
	rig.Eventually(t, soon, "the replica is empty", func() error {
		info, keys := admin.Text("INFO", "replication"), admin.Int("DBSIZE")
		if !strings.Contains(info, "master_link_status:up") || keys != 0 {
			return fmt.Errorf("%d keys: %s", keys, info)
		}
		return nil
	})
	t.Run("replica", func(t *testing.T) {
		var asking sync.WaitGroup
		for _, q := range all {
			asking.Go(func() { isNotDefinite(t, q) })
		}
		asking.Wait()
	})
	admin.Do("REPLICAOF", "NO", "ONE")
	for _, q := range all {
		t.Run("master/"+q.name, func(t *testing.T) { isTrue(t, q) })
	}
}

// isNotDefinite asks a replica.
func isNotDefinite(t *testing.T, q question) {
	err := q.ask(within(t, soon))
	assert.Error(t, err, "%s: it is not done either", q.name)
	for _, definite := range []error{
		latchkey.ErrNotSet, latchkey.ErrGone, latchkey.ErrNotHeld, latchkey.ErrLost, latchkey.ErrBroken, errNobody, errFree,
	} {
		assert.NotErrorIs(t, err, definite, q.name)
	}
}

// isTrue asks a master without data. On a busy machine it may not reply in time.
func isTrue(t *testing.T, q question) {
	if q.truth == nil {
		return
	}
	rig.Eventually(t, soon, q.truth.Error(), func() error {
		if err := q.ask(within(t, soon)); !errors.Is(err, q.truth) {
			return fmt.Errorf("answered: %w", err)
		}
		return nil
	})
}

func aboutLocks(t *testing.T, open func() *latchkey.Client) (all []question) {
	for _, k := range append(kinds, readKind) {
		client := open()
		forced := k.open(client, k.name+" forced")
		mustLock(t, forced)
		force := func(unlock func(context.Context) (bool, error)) func(context.Context) error {
			return func(ctx context.Context) error {
				held, err := unlock(ctx)
				if err == nil && !held {
					err = errFree
				}
				return err
			}
		}
		all = append(all,
			question{k.name + " ForceUnlock", force(forced.ForceUnlock), errFree},
			question{k.name + " ForceUnlock by name", force(func(ctx context.Context) (bool, error) { return client.ForceUnlock(ctx, forced.Name()) }), errFree},
		)
		extended, released := mustLock(t, k.open(open(), k.name+" extended")), mustLock(t, k.open(open(), k.name+" released"))
		all = append(all,
			question{k.name + " Extend", func(ctx context.Context) error { return extended.Extend(ctx, 2*time.Hour) }, latchkey.ErrLost},
			question{k.name + " Unlock", released.Unlock, nil},
		)
		if k.name != readKind.name {
			early := mustLock(t, k.open(open(), k.name+" released early"), latchkey.AtLeast(50*time.Second))
			all = append(all, question{k.name + " Unlock, stays taken", early.Unlock, nil})
		}
	}
	return all
}

// aboutReentry is about acquisitions that need an outer hold.
func aboutReentry(t *testing.T, open func() *latchkey.Client) (all []question) {
	for _, k := range append(kinds, readKind) {
		if !k.reentrant {
			continue
		}
		lock := k.open(open(), k.name+" outer")
		outer := mustLock(t, lock)
		all = append(all, question{k.name + " Lock again", func(ctx context.Context) error {
			_, err := lock.TryLock(outer.Context(ctx))
			return err
		}, latchkey.ErrLost})
	}
	return all
}

func aboutReadWriteLocks(t *testing.T, open func() *latchkey.Client) []question {
	writing := mustLock(t, open().NewRWLock("downgraded").Writer())
	lock := open().NewRWLock("nested")
	outer := mustLock(t, lock.Writer())
	inner, err := lock.Reader().Lock(outer.Context(t.Context()))
	require.NoError(t, err)
	return []question{
		{"Downgrade", func(ctx context.Context) error { _, err := writing.Downgrade(ctx); return err }, latchkey.ErrNotHeld},
		{"nested Extend", func(ctx context.Context) error { return inner.Extend(ctx, 2*time.Hour) }, latchkey.ErrLost},
	}
}

func aboutSemaphores(t *testing.T, open func() *latchkey.Client) []question {
	s := open().NewSemaphore("semaphore")
	require.NoError(t, s.SetPermits(t.Context(), 2))
	return []question{
		{"Semaphore Acquire", func(ctx context.Context) error { return s.Acquire(ctx, latchkey.Wait(time.Second)) }, latchkey.ErrNotSet},
		{"Semaphore TryAcquire", func(ctx context.Context) error { return s.TryAcquire(ctx) }, latchkey.ErrNotSet},
		{"Semaphore Drain", func(ctx context.Context) error { _, err := s.Drain(ctx); return err }, latchkey.ErrNotSet},
		{"Semaphore Inspect", func(ctx context.Context) error { _, err := statsOf(ctx, s); return err }, latchkey.ErrNotSet},
	}
}

func aboutPermits(t *testing.T, open func() *latchkey.Client) []question {
	s, fair, other := open().NewPermitSemaphore("permits"), open().NewFairSemaphore("fair"), open().NewPermitSemaphore("permits")
	require.NoError(t, s.SetPermits(t.Context(), 3))
	require.NoError(t, fair.SetPermits(t.Context(), 3))
	permit, err := s.Acquire(t.Context())
	require.NoError(t, err)
	return []question{
		{"PermitSemaphore TryAcquire", func(ctx context.Context) error { _, err := s.TryAcquire(ctx); return err }, latchkey.ErrNotSet},
		{"PermitSemaphore Inspect", func(ctx context.Context) error { _, err := statsOf(ctx, s); return err }, latchkey.ErrNotSet},
		{"PermitSemaphore Holders", func(ctx context.Context) error { _, err := s.Holders(ctx); return err }, latchkey.ErrNotSet},
		{"FairSemaphore TryAcquire", func(ctx context.Context) error { _, err := fair.TryAcquire(ctx); return err }, latchkey.ErrNotSet},
		{"PermitSemaphore RemainingLease", func(ctx context.Context) error {
			_, err := other.RemainingLease(ctx, permit.ID())
			return err
		}, latchkey.ErrNotHeld},
		{"PermitSemaphore SetLease", func(ctx context.Context) error {
			return other.SetLease(ctx, permit.ID(), time.Minute)
		}, latchkey.ErrNotHeld},
		{"Permit Extend", func(ctx context.Context) error { return permit.Extend(ctx, 2*time.Hour) }, latchkey.ErrLost},
	}
}

func aboutLatches(t *testing.T, open func() *latchkey.Client) []question {
	l := open().NewCountDownLatch("latch")
	set, err := l.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, set)
	return []question{
		{"CountDownLatch Await", func(ctx context.Context) error { return l.Await(ctx, latchkey.Wait(time.Second)) }, latchkey.ErrNotSet},
		{"CountDownLatch Await, UnsetIsOpen", func(ctx context.Context) error {
			return l.Await(ctx, latchkey.Wait(time.Second), latchkey.UnsetIsOpen())
		}, nil},
		{"CountDownLatch CountDown", func(ctx context.Context) error { _, err := l.CountDown(ctx); return err }, latchkey.ErrNotSet},
		{"CountDownLatch Count", func(ctx context.Context) error { _, err := l.Count(ctx); return err }, latchkey.ErrNotSet},
	}
}

func aboutElections(t *testing.T, open func() *latchkey.Client) []question {
	e := open().NewElection("election")
	leading, err := e.Campaign(t.Context(), "value")
	require.NoError(t, err)
	return []question{
		{"Election Leader", func(ctx context.Context) error {
			leader, err := e.Leader(ctx)
			if err == nil && leader.IsZero() {
				err = errNobody
			}
			return err
		}, errNobody},
		{"Leadership Proclaim", func(ctx context.Context) error { return leading.Proclaim(ctx, "next") }, latchkey.ErrLost},
	}
}

func aboutBarriers(t *testing.T, open func() *latchkey.Client) []question {
	b, admin := open().NewBarrier("barrier", 2), open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Await(ctx)
		done <- err
	}()
	rig.Eventually(t, soon, "the party waits", func() error {
		state, err := admin.NewBarrier("barrier", 2).State(t.Context())
		if err == nil && state.Waiting != 1 {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
	return []question{{"Barrier Await", stillWaits(done, cancel), nil}}
}

// stillWaits gives a call that waits already the time to query the replica a few times. Then it
// ends the wait.
func stillWaits(done <-chan error, cancel context.CancelFunc) func(context.Context) error {
	return func(context.Context) error {
		select {
		case err := <-done:
			return err
		case <-time.After(2 * time.Second):
			cancel()
			return <-done
		}
	}
}

// aboutWaiters is about calls that wait already.
func aboutWaiters(t *testing.T, open func() *latchkey.Client) []question {
	s, l := open().NewFairSemaphore("queue"), open().NewCountDownLatch("waiting")
	require.NoError(t, s.SetPermits(t.Context(), 1))
	_, err := s.Acquire(t.Context())
	require.NoError(t, err)
	_, err = l.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	acquired, opened := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx)
		acquired <- err
	}()
	go func() { opened <- l.Await(ctx) }()
	rig.Eventually(t, soon, "it waits", func() error {
		all, err := s.Waiters(t.Context())
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("%d wait", len(all))
		}
		return err
	})
	return []question{
		{"FairSemaphore Acquire, waiting", stillWaits(acquired, cancel), nil},
		{"CountDownLatch Await, waiting", stillWaits(opened, cancel), nil},
	}
}
