package main

import (
	"context"

	"github.com/latchkey-go/latchkey"
)

// guard is the right to run: a hold of a lock, a leadership, or a permit of a
// semaphore.
type guard interface {
	Context(parent context.Context) context.Context
	Lost() <-chan struct{}
	Err() error // why it is over, or nil if it is not
	Release(ctx context.Context) error
}

// door gives out guards: it is a lock, an election or a semaphore.
type door interface {
	enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error)
	tryEnter(ctx context.Context) (guard, error)
}

type lockDoor struct {
	latchkey.Locker

	always []latchkey.TryLockOption
}

func (d lockDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	hold, err := d.Lock(ctx, lockOptions(options, d.always)...)
	return lockGuard{hold}, err
}

func (d lockDoor) tryEnter(ctx context.Context) (guard, error) {
	hold, err := d.TryLock(ctx, d.always...)
	return lockGuard{hold}, err
}

// lockOptions joins options of both kinds.
func lockOptions(waits []latchkey.WaitOption, always []latchkey.TryLockOption) (all []latchkey.LockOption) {
	for _, o := range waits {
		all = append(all, o)
	}
	for _, o := range always {
		all = append(all, o)
	}
	return all
}

// lockGuard is a hold with the method names of a guard.
type lockGuard struct{ *latchkey.Hold }

func (g lockGuard) Release(ctx context.Context) error { return g.Unlock(ctx) }

// electionDoor is an election, with the value that the leader announces.
type electionDoor struct {
	*latchkey.Election

	value  string
	always []latchkey.TryLockOption
}

func (d electionDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	leadership, err := d.Campaign(ctx, d.value, lockOptions(options, d.always)...)
	return leaderGuard{leadership}, err
}

func (d electionDoor) tryEnter(ctx context.Context) (guard, error) {
	leadership, err := d.TryCampaign(ctx, d.value, d.always...)
	return leaderGuard{leadership}, err
}

// leaderGuard is a leadership with the method names of a guard.
type leaderGuard struct{ *latchkey.Leadership }

func (g leaderGuard) Release(ctx context.Context) error { return g.Resign(ctx) }

type permitDoor struct {
	permitPool

	always []latchkey.TryPermitOption
}

func (d permitDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	var each []latchkey.PermitOption
	for _, o := range options {
		each = append(each, o)
	}
	for _, o := range d.always {
		each = append(each, o)
	}
	return d.Acquire(ctx, each...)
}

func (d permitDoor) tryEnter(ctx context.Context) (guard, error) {
	return d.TryAcquire(ctx, d.always...)
}
