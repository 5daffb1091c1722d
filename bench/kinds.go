package main

import (
	"context"
	"math/rand/v2"
)

// alonePart is the part of a read/write lock that a writer holds: all of it.
const alonePart = 1 << 20

// A kind is a kind of lock in a contended workload.
type kind interface {
	// capacity is how much of the lock may be held at once.
	capacity() int64
	// prepare is called once, before acquire. It returns errMissing if the client has no such lock.
	prepare(ctx context.Context, c Client, key string) error
	// acquire waits for the lock, and returns how much of it the caller then holds.
	acquire(ctx context.Context, c Client, key string) (release Release, part int64, err error)
}

// exclusive is the lock that every peer has.
type exclusive struct{}

func (exclusive) capacity() int64 { return 1 }

func (exclusive) prepare(context.Context, Client, string) error { return nil }

func (exclusive) acquire(ctx context.Context, c Client, key string) (Release, int64, error) {
	release, err := c.Lock(ctx, key)
	return release, 1, err
}

type fair struct{}

func (fair) capacity() int64 { return 1 }

func (fair) prepare(_ context.Context, c Client, _ string) error { return has[FairLocker](c) }

func (fair) acquire(ctx context.Context, c Client, key string) (Release, int64, error) {
	release, err := c.(FairLocker).FairLock(ctx, key)
	return release, 1, err
}

// readWrite is a read/write lock. One acquisition in twenty writes.
type readWrite struct{}

func (readWrite) capacity() int64 { return alonePart }

func (readWrite) prepare(_ context.Context, c Client, _ string) error { return has[RWLocker](c) }

func (readWrite) acquire(ctx context.Context, c Client, key string) (Release, int64, error) {
	l := c.(RWLocker)
	if rand.IntN(20) == 0 {
		release, err := l.WLock(ctx, key)
		return release, alonePart, err
	}
	release, err := l.RLock(ctx, key)
	return release, 1, err
}

// permits is a semaphore.
type permits struct{}

const permitCount = 8

func (permits) capacity() int64 { return permitCount }

func (permits) prepare(ctx context.Context, c Client, key string) error {
	if err := has[Semaphorer](c); err != nil {
		return err
	}
	return c.(Semaphorer).SetPermits(ctx, key, permitCount)
}

func (permits) acquire(ctx context.Context, c Client, key string) (Release, int64, error) {
	release, err := c.(Semaphorer).Acquire(ctx, key)
	return release, 1, err
}

func has[T any](c Client) error {
	if _, ok := c.(T); !ok {
		return errMissing
	}
	return nil
}
