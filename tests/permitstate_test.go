package tests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The documented rights are enough for everything that semaphores and latches do.
func TestMinimalPermissionsOfSemaphores(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	client := narrow(t, server, latchkey.Options{Lease: 3 * time.Second, Tuning: latchkey.Tuning{PollCeiling: 900 * time.Millisecond, StaleWaiterTimeout: 500 * time.Millisecond}})
	admin := rig.NewAdmin(t, server)

	s := client.NewSemaphore("orders:1")
	_, err := s.TrySetPermits(ctx, 5)
	require.NoError(t, err)
	require.NoError(t, s.AcquireN(ctx, 2))
	waiting := make(chan error, 1)
	go func() { waiting <- s.AcquireN(within(t, soon), 5) }()
	rig.Eventually(t, soon, "permits are kept", func() error {
		if !admin.Exists("latchkey_sc_bar:{orders:1}") {
			return errors.New("not yet")
		}
		return nil
	})
	require.NoError(t, s.ReleaseN(ctx, 2))
	require.NoError(t, rig.Await(t, soon, "the waiter", waiting))
	require.NoError(t, s.AddPermits(ctx, 1))
	require.NoError(t, s.SetPermits(ctx, 9))
	_, err = s.Drain(ctx)
	require.NoError(t, err)
	_, err = s.SetTTL(ctx, latchkey.NoExpiry)
	require.NoError(t, err)
	_, err = s.Delete(ctx)
	require.NoError(t, err)

	p := client.NewPermitSemaphore("orders:2")
	_, err = p.TrySetPermits(ctx, 50)
	require.NoError(t, err)
	forever, err := p.Acquire(ctx, latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	require.NoError(t, forever.Release(ctx))
	useEverything(t, p, 50)
	held, err := p.Acquire(ctx)
	require.NoError(t, err)
	awaitRenewals(t, 1, held)
	_, err = p.Delete(ctx)
	require.NoError(t, err)

	latch := client.NewCountDownLatch("orders:3")
	_, err = latch.TrySetCount(ctx, 2, latchkey.TTL(time.Minute))
	require.NoError(t, err)
	go func() { waiting <- latch.Await(within(t, soon)) }()
	_, err = latch.CountDownAs(ctx, "one")
	require.NoError(t, err)
	_, err = latch.CountDown(ctx)
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the awaiter", waiting))
	_, err = latch.Delete(ctx)
	require.NoError(t, err)
	nothingDenied(t, admin)
}

// Out of memory: acquisitions get the error at once, while releases and renewals work.
func TestSemaphoresWithoutMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	admin := rig.NewAdmin(t, server)
	client := connect(t, server, latchkey.Options{Lease: 5 * time.Second})
	s, p := newSemaphore(t, client, 5), newPermits(t, client, 5)
	require.NoError(t, s.AcquireN(ctx, 2))
	permits, err := p.AcquireN(ctx, 3)
	require.NoError(t, err)
	other := connect(t, server).NewPermitSemaphore(p.Name())
	_, err = other.Release(ctx, permits[2].ID()) // the server has the script now
	require.NoError(t, err)
	require.NoError(t, s.Release(ctx))
	admin.Do("CONFIG", "SET", "maxmemory", "1")

	assert.ErrorContains(t, s.Acquire(ctx), "OOM")
	_, err = p.Acquire(ctx)
	assert.ErrorContains(t, err, "OOM")
	assert.NotErrorIs(t, err, latchkey.ErrNotAcquired, "it is no contention")
	assert.NotErrorIs(t, err, latchkey.ErrUnavailable, "it answers")
	awaitRenewals(t, 1, permits[0])
	require.NoError(t, permits[0].Release(ctx))
	_, err = other.Release(ctx, permits[1].ID())
	require.NoError(t, err)
	require.NoError(t, s.Release(ctx))
	assert.Equal(t, 5, available(t, s))
	counts(t, p, 5, 0)
}

// Without messages waiters poll.
func TestSemaphoresWithoutChannels(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	rig.NewAdmin(t, server).Do("ACL", "SETUSER", "default", "resetchannels")
	s := newSemaphore(t, connect(t, server, polling), 0)
	waiting := make(chan error, 1)
	waiter, attempts := connectRefused(t, server, polling)
	go func() { waiting <- waiter.NewSemaphore(s.Name()).AcquireN(within(t, soon), 2) }()
	atRest(t, attempts) // its subscription has been refused
	require.NoError(t, s.ReleaseN(t.Context(), 2))
	require.NoError(t, rig.Await(t, soon, "the waiter", waiting))
}

// Close ends waiters and gives permits back.
func TestCloseWithPermits(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	s := newPermits(t, connect(t, server), 3)
	client := connect(t, server)
	mine := client.NewPermitSemaphore(s.Name())
	permits, err := mine.AcquireN(ctx, 3)
	require.NoError(t, err)
	plain := newSemaphore(t, client, 1)
	require.NoError(t, plain.Acquire(ctx))
	waiting := make(chan error, 3)
	go func() { waiting <- firstOf(mine.Acquire(ctx)) }()
	go func() { waiting <- firstOf(mine.Acquire(ctx)) }()
	go func() { waiting <- plain.Acquire(ctx) }()
	awaitWaiting(t, client, latchkey.KindPermit, 2)
	awaitWaiting(t, client, latchkey.KindSemaphore, 1)
	require.NoError(t, client.Close(within(t, soon)))
	for range cap(waiting) {
		assert.ErrorIs(t, rig.Await(t, soon, "a waiter", waiting), latchkey.ErrClosed)
	}
	assert.ErrorIs(t, permits[0].Err(), latchkey.ErrClosed)
	counts(t, s, 3, 0)
	_, err = mine.Acquire(ctx)
	assert.ErrorIs(t, err, latchkey.ErrClosed)
	assert.ErrorIs(t, plain.Release(ctx), latchkey.ErrClosed)
}

// Bad arguments are refused before anything is sent.
func TestBadInputOfSemaphores(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	name := rig.Name(t)
	s, p := client.NewSemaphore(name), client.NewPermitSemaphore(name)
	tap.Forget()
	for i, err := range []error{
		s.AcquireN(ctx, 0), s.AcquireN(ctx, -1), s.TryAcquireN(ctx, 1<<40), s.ReleaseN(ctx, 0), firstOf(s.ReleaseIfExists(ctx, -1)),
		s.AddPermits(ctx, 0), s.AddPermits(ctx, -1<<40), firstOf(s.TrySetPermits(ctx, -1)), s.SetPermits(ctx, -1),
		s.Acquire(ctx, latchkey.Wait(-1)), s.Acquire(ctx, latchkey.Wait(0)), s.Acquire(ctx, nil),
		firstOf(s.TrySetPermits(ctx, 1, nil)), firstOf(s.TrySetPermits(ctx, 1, latchkey.TTL(0))), firstOf(s.SetTTL(ctx, 0)),
		firstOf(p.AcquireN(ctx, 0)), firstOf(p.AcquireN(ctx, 1001)), firstOf(p.Acquire(ctx, latchkey.Lease(0))),
		firstOf(p.Acquire(ctx, nil)), firstOf(p.RemainingLease(ctx, "zz")), p.SetLease(ctx, "aa", -1),
		firstOf(client.NewLock(name).TryLock(ctx, latchkey.Lease(latchkey.NoExpiry))), firstOf(client.NewLock(name).Lock(ctx, latchkey.Wait(0))),
		client.NewSemaphore("{}").Acquire(ctx), firstOf(client.NewPermitSemaphore("").Acquire(ctx)),
	} {
		assert.ErrorIs(t, err, latchkey.ErrInvalid, "%d", i)
	}
	assert.Empty(t, tap.Commands(), "nothing was sent")
}

// Under a name that belongs to another kind of object, nothing is changed.
func TestSemaphoresAndOtherKinds(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	for what, command := range map[string][]string{
		"hash": {"HSET", "", "a", "1"}, "list": {"RPUSH", "", "a"}, "text": {"SET", "", "no number"},
	} {
		t.Run(what, func(t *testing.T) {
			name := rig.Name(t)
			command[1] = name
			admin.Do(command...)
			before := admin.Dump(name)
			s, p := client.NewSemaphore(name), client.NewPermitSemaphore(name)
			for i, err := range []error{
				s.Acquire(ctx), s.Release(ctx), s.AddPermits(ctx, 1), firstOf(s.TrySetPermits(ctx, 1)), firstOf(s.Drain(ctx)),
				firstOf(statsOf(ctx, s)), firstOf(p.Acquire(ctx)), firstOf(p.TrySetPermits(ctx, 1)), firstOf(statsOf(ctx, p)),
			} {
				assert.ErrorIs(t, err, latchkey.ErrWrongKind, "%d", i)
			}
			assert.Equal(t, before, admin.Dump(name))
		})
	}
}

// Semaphores of many slots of a cluster, with messages of either kind.
func TestCluster_semaphores(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	for what, mode := range map[string]bool{"sharded": false, "classic": true} {
		t.Run(what, func(t *testing.T) {
			options := byMessages
			options.Tuning.ClassicPubSub = mode
			a := connectCluster(t, cluster, options)
			var refusals atomic.Int32
			options.Observer = func(e latchkey.Event) {
				if e.Type == latchkey.EventAttempt && errors.Is(e.Err, latchkey.ErrNotAcquired) {
					refusals.Add(1)
				}
			}
			b := connectCluster(t, cluster, options)
			ctx := within(t, time.Minute)
			granted := make(chan error, 20)
			var permits []*latchkey.Permit
			for i := range cap(granted) {
				name := fmt.Sprintf("%s:{pool %d}", t.Name(), i)
				p := a.NewPermitSemaphore(name)
				require.NoError(t, firstOf(p.TrySetPermits(ctx, 1)))
				permit, err := p.Acquire(ctx)
				require.NoError(t, err)
				permits = append(permits, permit)
				go func() {
					next, err := b.NewPermitSemaphore(name).Acquire(ctx)
					granted <- errors.Join(err, next.Release(context.WithoutCancel(ctx)))
				}()
			}
			rig.Eventually(t, soon, "all have asked, and once more when they listen", func() error {
				if n := int(refusals.Load()); n < 2*cap(granted) {
					return fmt.Errorf("%d attempts", n)
				}
				return nil
			})
			for _, permit := range permits {
				require.NoError(t, permit.Release(ctx))
				require.NoError(t, rig.Await(t, soon, "the waiter", granted))
			}
		})
	}
}
