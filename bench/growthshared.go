package main

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
)

const (
	readerLocks   = "Lock of a reader"
	readerUnlocks = "Unlock of a reader"
	writerRefused = "TryLock of a writer, refused"

	acquires       = "Acquire"
	acquireRefused = "TryAcquire, refused"
	releases       = "Release"
)

// sharedLease is so long that nothing is renewed during the measurement.
const sharedLease = time.Hour

func readersGrowth() Growth {
	return Growth{
		Name: "growth-readers", Title: "Read/write lock: readers that hold it", Beside: "readers",
		Operations: []string{readerLocks, readerUnlocks, writerRefused},
		Run:        growReaders,
	}
}

// growReaders makes many readers hold the lock, each with a hold of its own on the server.
func growReaders(e *env, s *stopwatch) error {
	clients, err := e.connect(2, latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}})
	if err != nil {
		return err
	}
	readers := clients[0].NewRWLock(growingName).Reader()
	err = e.eachOfMany(func(ctx context.Context, _ int) error {
		_, err := readers.Lock(ctx, latchkey.Lease(sharedLease))
		return err
	})
	if err != nil {
		return err
	}
	other := clients[1].NewRWLock(growingName)
	if err := s.timePairs(other.Reader(), readerLocks, readerUnlocks); err != nil {
		return err
	}
	for range growthRounds {
		if err := s.time(writerRefused, func() error { return refused(other.Writer().TryLock(e.ctx)) }); err != nil {
			return err
		}
	}
	return nil
}

func permitsGrowth() Growth {
	return Growth{
		Name: "growth-permits", Title: "Semaphore whose permits have leases: permits that are held", Beside: "permits",
		Operations: []string{acquires, acquireRefused, releases},
		Run:        growPermits,
	}
}

// growPermits acquires all permits but one, and then acquires and releases the last one.
func growPermits(e *env, s *stopwatch) error {
	clients, err := e.connect(2, latchkey.Options{})
	if err != nil {
		return err
	}
	crowd, other := clients[0].NewPermitSemaphore(growingName), clients[1].NewPermitSemaphore(growingName)
	if _, err := crowd.TrySetPermits(e.ctx, e.Many+1); err != nil {
		return err
	}
	for from := 0; from < e.Many; from += fillPart {
		if _, err := crowd.AcquireN(e.ctx, min(fillPart, e.Many-from), latchkey.Lease(sharedLease)); err != nil {
			return err
		}
	}
	for range growthRounds {
		if err := s.timeLastPermit(other); err != nil {
			return err
		}
	}
	return nil
}

func (s *stopwatch) timeLastPermit(semaphore *latchkey.PermitSemaphore) error {
	ctx := s.env.ctx
	var last *latchkey.Permit
	err := s.time(acquires, func() (err error) { last, err = semaphore.Acquire(ctx); return err })
	if err != nil {
		return err
	}
	err = s.time(acquireRefused, func() error {
		if _, err := semaphore.TryAcquire(ctx); !errors.Is(err, latchkey.ErrNotAcquired) {
			return errors.Join(errors.New("want a refusal"), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.time(releases, func() error { return last.Release(ctx) })
}
