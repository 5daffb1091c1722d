package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// delayedLock is a re-entrant lock behind a tap that can hold replies back, and the same lock of
// another client, which sees what the server does.
type delayedLock struct {
	tap   *rig.Tap
	lock  *latchkey.Lock
	other *latchkey.Lock
}

func newDelayedLock(t *testing.T, options latchkey.Options) delayedLock {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	l := delayedLock{tap, connectVia(t, server, tap.Addr(), options).NewLock(name), connect(t, server).NewLock(name)}
	mustUnlock(t, mustLock(t, l.lock)) // the connection is up, the scripts are known
	return l
}

// mine matches the commands that name the lock.
func (l delayedLock) mine() rig.Match { return rig.Mentions(l.lock.Name()) }

// A re-entry is executed, but its reply arrives after the hold has ended. It must not revive the
// hold.
func TestReentryAnsweredAfterTheLoss(t *testing.T) {
	t.Parallel()
	l := newDelayedLock(t, persistent)
	var outer *latchkey.Hold
	inTime(t, func(lease time.Duration) (executed bool) {
		outer = mustLock(t, l.lock, latchkey.Lease(lease))
		ctx := context.WithoutCancel(outer.Context(t.Context()))
		replies := l.tap.HoldReplies(l.mine())
		entering := lockInBackground(ctx, l.lock)
		executed = beforeTheLoss(outer, replies.Arrived)
		<-outer.Lost()
		replies.Release()
		entered := rig.Await(t, soon, "the re-entry", entering)
		if !executed {
			return false
		}
		require.ErrorIs(t, entered.err, latchkey.ErrNotAcquired)
		require.ErrorIs(t, entered.err, latchkey.ErrLost)
		return true
	})
	rig.Eventually(t, soon, "the lock is free", func() error {
		locked, err := isLocked(t.Context(), l.other)
		if locked {
			err = errors.Join(err, errors.New("held"))
		}
		return err
	})
	require.ErrorIs(t, outer.Err(), latchkey.ErrLost)
}

// beforeTheLoss waits for an event or for the loss of a hold, and reports whether the event came
// first.
func beforeTheLoss[E any](hold *latchkey.Hold, event <-chan E) bool {
	select {
	case <-event:
		return hold.Err() == nil
	case <-hold.Lost():
		return false
	}
}

// inTime gives a test a lease or a time to live: a second, and twice as much while the machine is
// too slow for it.
func inTime(t *testing.T, try func(lease time.Duration) (inTime bool)) {
	t.Helper()
	for lease := time.Second; !try(lease); lease *= 2 {
		require.Less(t, lease, soon, "too short")
	}
}

// The same with the client closed in between: nothing is left behind.
func TestReentryAnsweredDuringClose(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	lock := client.NewLock(name)
	outer := mustLock(t, lock)
	reply := tap.HoldReply(rig.Mentions(name))
	entering := lockInBackground(context.WithoutCancel(outer.Context(t.Context())), lock)
	rig.Await(t, soon, "the re-entry is on its way", reply.Arrived)
	closed := make(chan error, 1)
	go func() { closed <- client.Close(within(t, soon)) }()
	<-outer.Lost() // Close has begun
	reply.Release()
	require.ErrorIs(t, rig.Await(t, soon, "the re-entry", entering).err, latchkey.ErrClosed)
	require.NoError(t, rig.Await(t, soon, "Close", closed))
	require.NoError(t, free(rig.NewAdmin(t, server), name)())
}

// An extension whose reply arrives after the hold has ended fails.
func TestExtensionAnsweredAfterTheLoss(t *testing.T) {
	t.Parallel()
	l := newDelayedLock(t, persistent)
	inTime(t, func(lease time.Duration) (executed bool) {
		hold := mustLock(t, l.lock, latchkey.Lease(lease))
		replies := l.tap.HoldReplies(l.mine())
		extended := make(chan error, 1)
		go func() { extended <- hold.Extend(within(t, soon), time.Minute) }()
		executed = beforeTheLoss(hold, replies.Arrived)
		<-hold.Lost()
		replies.Release()
		err := rig.Await(t, soon, "Extend", extended)
		if executed {
			require.ErrorIs(t, err, latchkey.ErrNotHeld)
		}
		return executed
	})
	mustUnlock(t, mustLock(t, l.other)) // not only after the minute
}

// The contexts of a hold end when Unlock begins, because the server may free the lock long before
// its reply arrives.
func TestContextsEndBeforeTheLockIsFree(t *testing.T) {
	l := newDelayedLock(t, latchkey.Options{})
	hold := mustLock(t, l.lock)
	work := hold.Context(t.Context())
	reply := l.tap.HoldReply(l.mine())
	unlocked := make(chan error, 1)
	go func() { unlocked <- hold.Unlock(t.Context()) }()
	next := mustLock(t, l.other)
	require.ErrorIs(t, context.Cause(work), latchkey.ErrNotHeld)
	reply.Release()
	require.NoError(t, rig.Await(t, soon, "Unlock", unlocked))
	mustUnlock(t, next)
}

// A release that waits for another command of the hold counts as begun: when its retry budget is
// over, the hold is no longer renewed and ends.
func TestUnlockBehindAStalledReentry(t *testing.T) {
	t.Parallel()
	l := newDelayedLock(t, latchkey.Options{Lease: 6 * time.Second, RetryBudget: 2 * time.Second})
	outer := mustLock(t, l.lock)
	command := l.tap.HoldCommand(l.mine())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(outer.Context(t.Context())), soon)
	defer cancel()
	entering := lockInBackground(ctx, l.lock)
	rig.Await(t, soon, "the re-entry is on its way", command.Arrived)
	require.ErrorIs(t, outer.Unlock(t.Context()), latchkey.ErrUnknownOutcome)
	command.Release()
	if entered := rig.Await(t, soon, "the re-entry", entering); entered.err == nil {
		unlockInTheEnd(t, entered.hold)
	}
	mustUnlock(t, mustLock(t, l.other))
	require.Error(t, outer.Err())
}

// Re-entries and extensions shorter than the lease do not delay its renewal.
func TestShortReentriesDoNotStarveRenewal(t *testing.T) {
	t.Parallel()
	renewals, observe := renewalsSeen()
	l := newDelayedLock(t, latchkey.Options{Lease: 4 * time.Second, Observer: observe})
	outer := mustLock(t, l.lock)
	ctx := outer.Context(within(t, soon))
	for len(renewals) < 2 {
		rest(100 * time.Millisecond)
		mustUnlock(t, mustLockUnder(ctx, t, l.lock, latchkey.Lease(50*time.Millisecond)))
		require.NoError(t, outer.Extend(ctx, 10*time.Millisecond))
	}
	require.NoError(t, outer.Err())
	mustUnlock(t, outer)
}

// renewalsSeen returns an observer, and a channel that delivers the renewals that it sees.
func renewalsSeen() (renewals chan latchkey.Event, observe func(latchkey.Event)) {
	renewals = make(chan latchkey.Event, 1000)
	return renewals, func(e latchkey.Event) {
		if e.Type == latchkey.EventRenewed {
			renewals <- e
		}
	}
}

func mustLockUnder(ctx context.Context, t *testing.T, lock anyLock, options ...latchkey.LockOption) *latchkey.Hold {
	t.Helper()
	hold, err := lock.Lock(ctx, options...)
	require.NoError(t, err)
	return hold
}

// The undo of one acquisition of a guest does not affect its next one.
func TestGuest_undo_spares_the_next_acquisition(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	host, third := connect(t, server).NewLock(name), connect(t, server).NewLock(name)
	visitor := connectVia(t, server, tap.Addr()).NewLock(name)
	hosting := mustLock(t, host)
	reply := tap.HoldReply(rig.Mentions(name))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leaving := lockInBackground(ctx, visitor, guest(t, hosting))
	rig.Await(t, soon, "it is executed", reply.Arrived)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the visitor", leaving).err, latchkey.ErrUnknownOutcome)
	reply.Release()
	visit := mustLock(t, visitor, guest(t, hosting))
	rest(300 * time.Millisecond) // enough for several undos of the first
	mustUnlock(t, hosting)
	_, err := third.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NoError(t, visit.Err())
	mustUnlock(t, visit)
}

// A guest that acquires again with the owner of a broken hold does not make the old holder believe
// that it still holds the lock.
func TestGuest_does_not_revive_a_broken_hold(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	host := connect(t, server, latchkey.Options{Lease: 5 * time.Second}).NewLock(name)
	visitor, third := connect(t, server).NewLock(name), connect(t, server).NewLock(name)
	hosting := mustLock(t, host)
	broken, err := third.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, broken)
	mustUnlock(t, mustLock(t, third))
	visit := mustLock(t, visitor, guest(t, hosting))
	rig.Await(t, soon, "the host is told", hosting.Lost())
	require.ErrorIs(t, hosting.Unlock(t.Context()), latchkey.ErrNotHeld)
	require.NoError(t, visit.Err())
	mustUnlock(t, visit)
}

// A re-entry that reached its own MaxHold is over for every method, and the outer hold continues.
func TestInnerMaxHold(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.open(connect(t, rig.Shared()), rig.Name(t))
		outer := mustLock(t, lock)
		ctx := outer.Context(t.Context())
		inner := mustLockUnder(ctx, t, lock, latchkey.MaxHold(limit))
		assert.LessOrEqual(t, inner.ValidFor(), limit)
		assert.ErrorIs(t, inner.Extend(t.Context(), time.Minute), latchkey.ErrMaxHold)
		work := inner.Context(ctx)
		rig.Await(t, soon, "the limit", inner.Lost())
		rig.Await(t, soon, "the end of the work", work.Done())
		assert.ErrorIs(t, context.Cause(work), latchkey.ErrMaxHold)
		assert.ErrorIs(t, inner.Err(), latchkey.ErrMaxHold)
		for range 2 {
			err := inner.Unlock(t.Context())
			assert.ErrorIs(t, err, latchkey.ErrNotHeld)
			assert.ErrorIs(t, err, latchkey.ErrLost)
		}
		assert.NoError(t, outer.Err())
		assert.Equal(t, 1, countOf(outer))
		mustUnlock(t, outer)
		locked, err := isLocked(t.Context(), lock)
		require.NoError(t, err)
		assert.False(t, locked)
	}, reentrant)
}

// If foreign data has replaced the key of a lock, the hold is over and the data stays.
func TestUnlockMeetsAnotherKindOfKey(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		hold := mustLock(t, k.open(connect(t, server), name))
		admin.Do("DEL", name)
		admin.Do("RPUSH", name, "data")
		err := hold.Unlock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotHeld)
		require.ErrorIs(t, err, latchkey.ErrLost)
		require.EqualValues(t, 1, admin.Int("LLEN", name))
		admin.Do("DEL", name)
	})
}

// A call obeys its context while another one waits for a connection to a silent server.
func TestContextIsObeyedWhileAnotherDials(t *testing.T) {
	rig.Need(t, rig.Process)
	t.Parallel()
	server := rig.Fresh(t)
	client := connect(t, server)
	mustUnlock(t, mustLock(t, client.NewLock("job")))
	server.Pause(t)
	defer server.Resume(t)
	rest(3500 * time.Millisecond) // until the connection is given up
	first := lockInBackground(within(t, time.Minute), client.NewLock("one"))
	rest(100 * time.Millisecond)
	require.NoError(t, rig.InTime(t, func(int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := client.NewLock("other").TryLock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took > time.Second {
			return fmt.Errorf("it took %v", took)
		}
		return nil
	}))
	server.Resume(t)
	mustUnlock(t, rig.Await(t, soon, "the first", first).hold)
}

// A server that is silent for longer than connections last does not end a wait whose context has
// not ended: timeouts of the library are not timeouts of the caller.
func TestWaitOutlastsASilentServer(t *testing.T) {
	rig.Need(t, rig.Process)
	t.Parallel()
	server := rig.Fresh(t)
	holder, waiter := connect(t, server).NewLock("job"), connect(t, server, brief).NewLock("job")
	hold := mustLock(t, holder, latchkey.Lease(5*time.Second))
	waiting := lockInBackground(within(t, time.Minute), waiter)
	awaitWaiter(t, rig.NewAdmin(t, server), "job")
	server.Pause(t)
	select {
	case a := <-waiting:
		t.Fatalf("the wait ended: %v", a.err)
	case <-time.After(4 * time.Second):
	}
	server.Resume(t)
	next := rig.Await(t, 3*soon, "the waiter", waiting)
	require.NoError(t, next.err)
	require.ErrorIs(t, hold.Err(), latchkey.ErrLost)
	unlockInTheEnd(t, next.hold)
}

// A short stall in which many callers leave costs no hold: renewals do not queue behind
// acquisitions.
func TestShortStallUnderLoad(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	link := rig.NewLink(t, server)
	renewals, observe := renewalsSeen()
	client := connectVia(t, server, link.Addr(), latchkey.Options{Lease: 5 * time.Second, Tuning: latchkey.Tuning{MaxInFlight: 16}, Observer: observe})
	hold := mustLock(t, client.NewLock(name))
	link.DelayReplies(800 * time.Millisecond)
	leaving := make([]<-chan acquisition, 32)
	for i := range leaving {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		leaving[i] = lockInBackground(ctx, client.NewLock(fmt.Sprint(name, ":crowd", i)))
	}
	for _, left := range leaving {
		require.Error(t, rig.Await(t, soon, "a caller leaves", left).err)
	}
	link.Heal()
	for range 2 {
		rig.Await(t, soon, "a renewal", renewals)
	}
	require.NoError(t, hold.Err())
	mustUnlock(t, hold)
}

// Close releases holds even if its context has already ended.
func TestCloseUnderADeadContext(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	mustLock(t, client.NewLock(name))
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, closeAll(dead))
	require.NoError(t, free(rig.NewAdmin(t, server), name)())
}
