package main

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
)

// A scenario is a sequence of operations on one object. It leaves the object as it was.
type scenario struct {
	object string
	steps  func(c *counting) ([]step, error)
	shared bool // a goroutine of the other client takes part
}

// A step is an operation. A step without a name is not counted.
type step struct {
	name string
	do   func() error
}

// A lockMaker makes one kind of lock.
type lockMaker func(c *latchkey.Client) latchkey.Locker

func scenarios() []scenario {
	kinds := []struct {
		name string
		open lockMaker
	}{
		{"Mutex", func(c *latchkey.Client) latchkey.Locker { return c.NewMutex("mutex") }},
		{"Lock", func(c *latchkey.Client) latchkey.Locker { return c.NewLock("lock") }},
		{"FencedLock", func(c *latchkey.Client) latchkey.Locker { return c.NewFencedLock("fenced") }},
		{"SpinLock", func(c *latchkey.Client) latchkey.Locker { return c.NewSpinLock("spin", latchkey.Backoff{}) }},
		{"FairLock", func(c *latchkey.Client) latchkey.Locker { return c.NewFairLock("fair") }},
		{"RWLock, reader", func(c *latchkey.Client) latchkey.Locker { return c.NewRWLock("read").Reader() }},
		{"RWLock, writer", func(c *latchkey.Client) latchkey.Locker { return c.NewRWLock("write").Writer() }},
	}
	var all []scenario
	for _, k := range kinds {
		all = append(all, scenario{k.name, k.open.alone, false})
		if k.name == "RWLock, reader" {
			continue // readers share the lock
		}
		all = append(all, scenario{k.name, k.open.refused, false})
		if k.name != "SpinLock" { // a SpinLock costs the same as a Lock
			all = append(all, scenario{k.name, k.open.kept, false})
		}
		if k.name != "SpinLock" { // a SpinLock polls
			all = append(all, scenario{k.name, k.open.waits, true})
		}
	}
	return append(all,
		scenario{"MultiLock of 2", lockMaker(func(c *latchkey.Client) latchkey.Locker {
			return latchkey.NewMultiLock(c.NewLock("multi1"), c.NewLock("multi2"))
		}).alone, false},
		scenario{"Semaphore", semaphoreSteps, false}, scenario{"PermitSemaphore", permitSteps, false},
		scenario{"FairSemaphore", fairPermitSteps, false}, scenario{"CountDownLatch", latchSteps, false},
		scenario{"RateLimiter", limiterSteps, false},
		scenario{"Barrier of 1", barrierSteps, false}, scenario{"Barrier of 2", barrierOfTwoSteps, true},
		scenario{"Election", electionSteps, false}, scenario{"Election", candidateSteps, true},
		scenario{"Objects", objectSteps, false})
}

func (open lockMaker) alone(c *counting) ([]step, error) {
	lock := open(c.one)
	var hold *latchkey.Hold
	return []step{
		{"Lock", func() (err error) { hold, err = lock.Lock(c.ctx); return err }},
		{"Extend", func() error { return hold.Extend(c.ctx, time.Minute) }},
		{"Unlock", func() error { return hold.Unlock(c.ctx) }},
	}, nil
}

func (open lockMaker) refused(c *counting) ([]step, error) {
	lock, other := open(c.one), open(c.two)
	var hold *latchkey.Hold
	return []step{
		{"", func() (err error) { hold, err = other.Lock(c.ctx); return err }},
		{tryRefused, func() error { return refused(lock.TryLock(c.ctx)) }},
		{"", func() error { return hold.Unlock(c.ctx) }},
	}, nil
}

func (open lockMaker) kept(c *counting) ([]step, error) {
	lock := open(c.one)
	var hold *latchkey.Hold
	return []step{
		{"Lock, AtLeast", func() (err error) { hold, err = lock.Lock(c.ctx, latchkey.AtLeast(time.Minute)); return err }},
		{"Unlock, stays taken", func() error { return hold.Unlock(c.ctx) }},
		{"", func() error { _, err := c.two.ForceUnlock(c.ctx, lock.Name()); return err }},
	}, nil
}

func (open lockMaker) waits(c *counting) ([]step, error) {
	lock, other := open(c.one), open(c.two)
	var hold *latchkey.Hold
	var waiter <-chan attempt
	return []step{
		{"", func() (err error) { hold, err = other.Lock(c.ctx); return err }},
		{lockRefused + " and waiting", func() error { waiter = inBackground(c.ctx, lock); return nil }},
		{unlockGrants, func() error {
			if err := hold.Unlock(c.ctx); err != nil {
				return err
			}
			got := <-waiter
			hold = got.hold
			return got.err
		}},
		{"", func() error { return hold.Unlock(c.ctx) }},
	}, nil
}

func semaphoreSteps(c *counting) ([]step, error) {
	s := c.one.NewSemaphore("semaphore")
	_, err := s.TrySetPermits(c.ctx, 1)
	return []step{
		{acquires, func() error { return s.Acquire(c.ctx) }},
		{acquireRefused, func() error { return refused(nil, s.TryAcquire(c.ctx)) }},
		{releases, func() error { return s.Release(c.ctx) }},
		{"Inspect", func() error { _, err := s.Inspect(c.ctx); return err }},
	}, err
}

// permitPool is a semaphore whose permits have leases.
type permitPool interface {
	TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	Acquire(ctx context.Context, options ...latchkey.PermitOption) (*latchkey.Permit, error)
	TryAcquire(ctx context.Context, options ...latchkey.TryPermitOption) (*latchkey.Permit, error)
	Inspect(ctx context.Context) (latchkey.Object, error)
}

func permitSteps(c *counting) ([]step, error) {
	return poolSteps(c, c.one.NewPermitSemaphore("permits"))
}

func fairPermitSteps(c *counting) ([]step, error) {
	return poolSteps(c, c.one.NewFairSemaphore("fairpermits"))
}

func poolSteps(c *counting, s permitPool) ([]step, error) {
	_, err := s.TrySetPermits(c.ctx, 1)
	var permit *latchkey.Permit
	return []step{
		{acquires, func() (err error) { permit, err = s.Acquire(c.ctx); return err }},
		{acquireRefused, func() error { _, err := s.TryAcquire(c.ctx); return refused(nil, err) }},
		{"Extend", func() error { return permit.Extend(c.ctx, time.Minute) }},
		{releases, func() error { return permit.Release(c.ctx) }},
		{"Inspect", func() error { _, err := s.Inspect(c.ctx); return err }},
	}, err
}

func latchSteps(c *counting) ([]step, error) {
	l := c.one.NewCountDownLatch("latch")
	countDown := func() error { _, err := l.CountDown(c.ctx); return err }
	return []step{
		{"TrySetCount", func() error { _, err := l.TrySetCount(c.ctx, 2); return err }},
		{"CountDown", countDown},
		{"CountDown to 0", countDown},
		{"Await, open", func() error { return l.Await(context.WithoutCancel(c.ctx)) }},
	}, nil
}
