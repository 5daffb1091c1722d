package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// unlockable is what unlockBehind needs of a hold.
type unlockable interface {
	Context(parent context.Context) context.Context
	Unlock(ctx context.Context) error
}

// releasable is a permit as an unlockable.
type releasable struct{ *latchkey.Permit }

func (p releasable) Unlock(ctx context.Context) error { return p.Release(ctx) }

// unlockBehind unlocks a hold while the answer to an earlier command for it is held back. It
// releases that answer when Unlock has begun, and holds back the answer to the release until that
// time. It returns the error of Unlock.
func unlockBehind(t *testing.T, tap *rig.Tap, name string, hold unlockable, earlier *rig.Held, until time.Time) error {
	t.Helper()
	work, unlocked := hold.Context(t.Context()), make(chan error, 1)
	go func() { unlocked <- hold.Unlock(context.Background()) }()
	rig.Await(t, soon, "Unlock begins", work.Done())
	release := tap.HoldReply(rig.Mentions(name))
	earlier.Release()
	rig.Await(t, soon, "the release", release.Arrived)
	rest(time.Until(until))
	release.Release()
	return rig.Await(t, soon, "Unlock", unlocked)
}

// punctually repeats a try that fails on a machine that is late by a twelfth of the lease: within a
// sixth of the lease, two steps of a try that are that late, one after the other, have an answer.
func punctually(t *testing.T, lease time.Duration, try func() error) {
	t.Helper()
	for range 5 {
		worst := rig.WatchLateness(nil)
		err := try()
		late := worst()
		if err == nil {
			return
		}
		require.Greater(t, late, lease/12, "%v", err)
		t.Logf("%v, on a machine that was %v late", err, late)
	}
	t.Log("not judged: the machine is too busy")
}

// A renewal that is answered while Unlock waits for it counts: Unlock has the time of the new lease
// for its own answer.
func TestRenewalAnsweredDuringUnlock(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	punctually(t, lease, func() error {
		l := newDelayedLock(t, latchkey.Options{Lease: lease})
		hold, acquired := mustLock(t, l.lock), time.Now()
		renewal := l.tap.HoldReply(l.mine())
		rig.Await(t, soon, "the renewal", renewal.Arrived)
		return unlockBehind(t, l.tap, l.lock.Name(), hold, renewal, acquired.Add(lease))
	})
}

// A re-entry that is answered while Unlock of the outer hold waits for it goes on without that
// hold, and Unlock has the time of its longer lease.
func TestReentryAnsweredDuringUnlock(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	punctually(t, lease, func() error {
		l := newDelayedLock(t, persistent)
		outer, acquired := mustLock(t, l.lock, latchkey.Lease(lease)), time.Now()
		rest(lease / 2)
		reply := l.tap.HoldReply(l.mine())
		entering := lockInBackground(context.WithoutCancel(outer.Context(t.Context())), l.lock, latchkey.Lease(time.Minute))
		rig.Await(t, soon, "the re-entry is on its way", reply.Arrived)
		err := unlockBehind(t, l.tap, l.lock.Name(), outer, reply, acquired.Add(lease))
		entered := rig.Await(t, soon, "the re-entry", entering)
		if err = errors.Join(err, entered.err); err != nil {
			return err
		}
		require.NoError(t, entered.hold.Err())
		mustUnlock(t, entered.hold)
		mustUnlock(t, mustLock(t, l.other)) // not only after the minute
		return nil
	})
}

// The release of a re-entry raises the lease of the outer hold. That counts too if it is answered
// while Unlock of the outer hold waits for it.
func TestPartialReleaseAnsweredDuringUnlock(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	punctually(t, lease, func() error {
		l := newDelayedLock(t, latchkey.Options{Lease: lease})
		outer := mustLock(t, l.lock)
		inner, entered := mustLockUnder(outer.Context(t.Context()), t, l.lock), time.Now()
		rest(lease / 6) // the first renewal is as much later again
		reply, unlocked := l.tap.HoldReply(l.mine()), make(chan error, 1)
		go func() { unlocked <- inner.Unlock(context.Background()) }()
		rig.Await(t, soon, "the release of the re-entry", reply.Arrived)
		err := unlockBehind(t, l.tap, l.lock.Name(), outer, reply, entered.Add(lease))
		return errors.Join(err, rig.Await(t, soon, "Unlock of the re-entry", unlocked))
	})
}

// A lease of a permit that is set while its release waits counts: the release has the time of the
// new lease for its own answer.
func TestSetLeaseAnsweredDuringRelease(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	server := rig.Shared()
	s0 := newPermits(t, connect(t, server), 1)
	punctually(t, lease, func() error {
		tap := rig.NewTap(t, server)
		s := connectVia(t, server, tap.Addr()).NewPermitSemaphore(s0.Name())
		p, err := s.Acquire(t.Context(), latchkey.Lease(lease))
		require.NoError(t, err)
		acquired := time.Now()
		rest(lease / 2)
		reply, set := tap.HoldReply(rig.Mentions(s.Name())), make(chan error, 1)
		go func() { set <- s.SetLease(t.Context(), p.ID(), time.Minute) }()
		rig.Await(t, soon, "the lease is on its way", reply.Arrived)
		err = unlockBehind(t, tap, s.Name(), releasable{p}, reply, acquired.Add(lease))
		if e := rig.Await(t, soon, "SetLease", set); !errors.Is(e, latchkey.ErrNotHeld) {
			err = errors.Join(err, fmt.Errorf("SetLease: %w", e))
		}
		counts(t, s0, 1, 0)
		return err
	})
}

// SetLease that waits for another command of the permit is not sent if the release of the permit
// begins before.
func TestSetLeaseThatWaitsDuringRelease(t *testing.T) {
	t.Parallel()
	const lease, unusual = 3 * time.Second, 54321 * time.Millisecond
	server := rig.Shared()
	s0 := newPermits(t, connect(t, server), 1)
	punctually(t, lease, func() error {
		tap := rig.NewTap(t, server)
		s := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: lease}).NewPermitSemaphore(s0.Name())
		p, err := s.Acquire(t.Context())
		require.NoError(t, err)
		renewal, set := tap.HoldReply(rig.Mentions(idsOf(s.Name()))), make(chan error, 1)
		rig.Await(t, soon, "the renewal", renewal.Arrived)
		go func() { set <- s.SetLease(t.Context(), p.ID(), unusual) }()
		rest(50 * time.Millisecond) // until it waits
		err = unlockBehind(t, tap, s.Name(), releasable{p}, renewal, time.Now())
		if e := rig.Await(t, soon, "SetLease", set); !errors.Is(e, latchkey.ErrNotHeld) {
			err = errors.Join(err, fmt.Errorf("SetLease: %w", e))
		}
		if sent := tap.Executed(rig.Mentions(fmt.Sprint(unusual.Milliseconds()))); len(sent) > 0 {
			err = errors.Join(err, errors.New("it was sent"))
		}
		counts(t, s0, 1, 0)
		return err
	})
}
