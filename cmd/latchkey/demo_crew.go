package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
)

// breather is how long a worker does something else between two turns.
const breather = time.Millisecond

// worker increments the counter of an arena again and again.
type worker struct {
	name    string
	arena   *arena
	client  *latchkey.Client // nil without a lock
	lock    latchkey.Locker
	turns   atomic.Int64
	longest atomic.Int64 // wait for the lock
}

// work goes on until the shift is over. It finishes the turn that it is in, which
// only ctx can interrupt.
func (w *worker) work(ctx, shift context.Context) error {
	for pause(shift, breather) == nil {
		if err := w.turn(ctx, shift); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func (w *worker) turn(ctx, shift context.Context) error {
	if w.lock == nil {
		return w.increment(ctx)
	}
	began := time.Now()
	hold, err := w.lock.Lock(shift)
	if err != nil {
		return unlessOver(shift, err)
	}
	w.longest.Store(max(w.longest.Load(), int64(time.Since(began))))
	if err := w.increment(hold.Context(ctx)); err != nil {
		_ = hold.Unlock(ctx)
		return err
	}
	return hold.Unlock(ctx)
}

func (w *worker) increment(ctx context.Context) error {
	if err := w.arena.increment(ctx); err != nil {
		return err
	}
	w.turns.Add(1)
	return nil
}

// unlessOver takes the end of the shift for what it is: no error.
func unlessOver(shift context.Context, err error) error {
	if shift.Err() == nil {
		return err
	}
	return nil
}

// crew is all workers of an act.
type crew struct {
	workers []*worker
	arena   *arena
	failed  chan error // the first failure
	end     context.CancelFunc
	wg      sync.WaitGroup
}

// newCrew hires workers; with a lock, each has a client and so connections of its
// own, as if it were another process.
func newCrew(ctx context.Context, s *stage, arena *arena, lock string) (*crew, error) {
	c := &crew{arena: arena, failed: make(chan error, 1), end: func() {}}
	for i := range s.workers {
		w := &worker{name: fmt.Sprintf("worker %d", i+1), arena: arena}
		c.workers = append(c.workers, w)
		if lock == "" {
			continue
		}
		if err := w.takeUp(ctx, s, lock); err != nil {
			c.dismiss()
			return nil, err
		}
	}
	return c, nil
}

func (w *worker) takeUp(ctx context.Context, s *stage, lock string) error {
	client, err := latchkey.Connect(ctx, s.url, s.options)
	if err != nil {
		return libraryError(err)
	}
	w.client, w.lock = client, client.NewLock(lock)
	return nil
}

func (c *crew) start(ctx context.Context) {
	var shift context.Context
	shift, c.end = context.WithCancel(ctx)
	for _, w := range c.workers {
		c.wg.Go(func() { c.note(w.work(ctx, shift)) })
	}
}

func (c *crew) note(err error) {
	if err == nil {
		return
	}
	select {
	case c.failed <- err:
	default: // the first one tells enough
	}
}

// finish lets everybody end the turn that they are in, and returns the first
// failure.
func (c *crew) finish() error {
	c.end()
	c.wg.Wait()
	select {
	case err := <-c.failed:
		return failure(err)
	default:
		return nil
	}
}

// failure tells a worker whose lock was taken from it, which disproves the whole
// thing, from one that could not reach the server.
func failure(err error) error {
	if errors.Is(err, latchkey.ErrLost) || errors.Is(err, latchkey.ErrNotHeld) {
		return exitWith(exitProofFailed, "PROOF FAILED: %w", err)
	}
	return exitWith(exitUnavailable, "%w", err)
}

// dismiss closes the clients of a crew that has finished.
func (c *crew) dismiss() {
	c.end()
	c.wg.Wait()
	for _, w := range c.workers {
		if w.client != nil {
			closeClient(w.client)
		}
	}
}

func (c *crew) turns() (sum int64) {
	for _, w := range c.workers {
		sum += w.turns.Load()
	}
	return sum
}

func (c *crew) longestWait() (longest time.Duration) {
	for _, w := range c.workers {
		longest = max(longest, time.Duration(w.longest.Load()))
	}
	return longest
}
