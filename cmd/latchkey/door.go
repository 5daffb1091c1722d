package main

import (
	"context"

	"github.com/latchkey-go/latchkey"
)

// guard is the right to be inside: a hold of a lock, a leadership, or a permit of a
// semaphore.
type guard interface {
	Context(parent context.Context) context.Context
	Lost() <-chan struct{}
	Err() error // why it is over, as of now
	Release(ctx context.Context) error
}

// door is where guards are given out.
type door interface {
	enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error)
	tryEnter(ctx context.Context) (guard, error)
}

type lockDoor struct {
	latchkey.Locker

	always []latchkey.TryLockOption
}

func (d lockDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	var each []latchkey.LockOption
	for _, o := range options {
		each = append(each, o)
	}
	for _, o := range d.always {
		each = append(each, o)
	}
	hold, err := d.Lock(ctx, each...)
	return lockGuard{hold}, err
}

func (d lockDoor) tryEnter(ctx context.Context) (guard, error) {
	hold, err := d.TryLock(ctx, d.always...)
	return lockGuard{hold}, err
}

// lockGuard is a hold under the names that it shares with a permit.
type lockGuard struct{ *latchkey.Hold }

func (g lockGuard) Release(ctx context.Context) error { return g.Unlock(ctx) }

// electionDoor lets in who leads, with what it announces.
type electionDoor struct {
	*latchkey.Election

	value string
}

func (d electionDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	each := make([]latchkey.LockOption, len(options))
	for i, o := range options {
		each[i] = o
	}
	leadership, err := d.Campaign(ctx, d.value, each...)
	return leaderGuard{leadership}, err
}

func (d electionDoor) tryEnter(ctx context.Context) (guard, error) {
	leadership, err := d.TryCampaign(ctx, d.value)
	return leaderGuard{leadership}, err
}

// leaderGuard is a leadership under the names that it shares with a permit.
type leaderGuard struct{ *latchkey.Leadership }

func (g leaderGuard) Release(ctx context.Context) error { return g.Resign(ctx) }

type permitDoor struct{ permitPool }

func (d permitDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	each := make([]latchkey.PermitOption, len(options))
	for i, o := range options {
		each[i] = o
	}
	return d.Acquire(ctx, each...)
}

func (d permitDoor) tryEnter(ctx context.Context) (guard, error) { return d.TryAcquire(ctx) }
