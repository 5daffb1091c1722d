package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// The phases of a measurement.
const (
	warming int32 = iota
	measuring
	ended
)

// leastWarmup is enough time for clients to open their connections, even over a link.
const leastWarmup = 200 * time.Millisecond

// drainLimit is how long workers may usually take to end after the measured time.
const drainLimit = 10 * time.Second

// A window runs workers through a warm-up and a measured time.
type window struct {
	env   *env
	limit time.Duration // how long workers may take to end after the measured time
	phase atomic.Int32
	group sync.WaitGroup

	mu     sync.Mutex
	failed error // of the worker that failed first
}

// start runs a worker, which should return when the window has ended. If a worker fails, run fails.
func (w *window) start(worker func(ctx context.Context) error) {
	w.group.Go(func() {
		if err := worker(w.env.ctx); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.failed == nil {
				w.failed = err
			}
		}
	})
}

func (w *window) ended() bool { return w.phase.Load() == ended }

func (w *window) measuring() bool { return w.phase.Load() == measuring }

// run lets the time pass, waits for the workers, and returns the counters at both ends.
func (w *window) run() (from, to counters, err error) {
	time.Sleep(max(w.env.Time/4, leastWarmup))
	if from, err = w.env.count(); err != nil {
		return from, to, err
	}
	w.phase.Store(measuring)
	time.Sleep(w.env.Time)
	w.phase.Store(ended)
	if to, err = w.env.count(); err != nil {
		return from, to, err
	}
	return from, to, w.drain()
}

// drain waits for the workers. A worker that waits for the lock gets it after the workers before
// it.
func (w *window) drain() error {
	done := make(chan struct{})
	go func() {
		w.group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(w.limit):
		if err := w.error(); err != nil {
			return err
		}
		return errors.New("a goroutine did not get the lock within " + w.limit.String() + " of the end")
	}
	return w.error()
}

func (w *window) error() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}
