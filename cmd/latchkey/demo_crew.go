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

// breather is the pause of a worker between two turns.
const breather = time.Millisecond

// worker does its task repeatedly.
type worker struct {
	name    string
	task    func(context.Context) error
	client  *latchkey.Client // nil without a door
	door    door
	inside  atomic.Bool
	turns   atomic.Int64
	longest atomic.Int64 // longest wait at the door, in ns
}

// work takes turns until the shift ends. It finishes the current turn, which only
// ctx can interrupt.
func (w *worker) work(ctx, shift context.Context) error {
	for pause(shift, breather) == nil {
		if err := w.turn(ctx, shift); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func (w *worker) turn(ctx, shift context.Context) error {
	if w.door == nil {
		return w.do(ctx)
	}
	began := time.Now()
	g, err := w.door.enter(shift)
	if err != nil {
		return unlessOver(shift, err)
	}
	w.longest.Store(max(w.longest.Load(), int64(time.Since(began))))
	if err := w.do(g.Context(ctx)); err != nil {
		_ = g.Release(ctx)
		return err
	}
	return g.Release(ctx)
}

func (w *worker) do(ctx context.Context) error {
	w.inside.Store(true)
	defer w.inside.Store(false)
	if err := w.task(ctx); err != nil {
		return err
	}
	w.turns.Add(1)
	return nil
}

// unlessOver returns err, or nil if the shift has ended.
func unlessOver(shift context.Context, err error) error {
	if shift.Err() == nil {
		return err
	}
	return nil
}

// crew has all workers of an act.
type crew struct {
	workers []*worker
	gauge   *gauge
	failed  chan error // the first failure
	end     context.CancelFunc
	wg      sync.WaitGroup
}

// newCrew creates the workers. With a door, each worker has a client with
// connections of its own, as if it were another process.
func newCrew(ctx context.Context, s *stage, g *gauge, task func(context.Context) error,
	doorOf func(*latchkey.Client) door) (*crew, error) {
	c := &crew{gauge: g, failed: make(chan error, 1), end: func() {}}
	for i := range s.workers {
		w := &worker{name: fmt.Sprintf("worker %d", i+1), task: task}
		c.workers = append(c.workers, w)
		if doorOf == nil {
			continue
		}
		client, err := s.connect(ctx)
		if err != nil {
			c.dismiss()
			return nil, err
		}
		w.client, w.door = client, doorOf(client)
	}
	return c, nil
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
	default: // the first failure is enough
	}
}

// finish lets all workers end their current turn, and returns the first failure.
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

// failure returns the error of a worker, with its exit code. A worker that lost its
// lock or permit disproves the demo; a worker that could not reach the server does
// not.
func failure(err error) error {
	if errors.Is(err, latchkey.ErrLost) || errors.Is(err, latchkey.ErrNotHeld) {
		return exitWith(exitProofFailed, "PROOF FAILED: %w", plainError{err})
	}
	return exitWith(exitUnavailable, "%w", plainError{err})
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
