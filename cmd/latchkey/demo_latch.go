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

// steps is the number of preparations before workers may begin.
const steps = 3

// playLatch shows that workers begin when all preparations are done, and not
// before, although one preparation is reported twice.
func playLatch(ctx context.Context, s *stage) (*proof, error) {
	s.explain(
		fmt.Sprintf("%d workers wait at a latch until %d preparations are done.", s.workers, steps),
		"The second preparation is reported twice, as if after a restart.")
	client, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer closeClient(client)
	latch := client.NewCountDownLatch(s.prefix + "latch")
	defer remove(latch.Delete)
	if _, err := latch.TrySetCount(context.WithoutCancel(ctx), steps, latchkey.TTL(leftovers)); err != nil {
		return nil, libraryError(err)
	}

	start := &startLine{stage: s, pause: s.duration / 10}
	ctx, cancel := context.WithCancel(ctx)
	defer start.dismiss()
	defer cancel()
	if err := start.call(ctx, latch.Name()); err != nil {
		return nil, err
	}
	if err := start.prepare(ctx, latch); err != nil {
		return nil, err
	}
	start.runners.Wait()
	return start.prove(), nil
}

// startLine has the waiting workers and their counts. The counts are not in Redis,
// because they must not depend on what they check.
type startLine struct {
	stage   *stage
	pause   time.Duration // the time of one preparation
	clients []*latchkey.Client
	runners sync.WaitGroup
	done    atomic.Int64 // preparations that are done, counted before the latch
	passed  atomic.Int64
	early   atomic.Int64 // workers that passed before all preparations were done
}

// call starts the workers, each with a client of its own. They wait at the latch.
func (l *startLine) call(ctx context.Context, latch string) error {
	for range l.stage.workers {
		client, err := l.stage.connect(ctx)
		if err != nil {
			return err
		}
		l.clients = append(l.clients, client)
	}
	for _, client := range l.clients {
		l.runners.Go(func() { l.run(ctx, client.NewCountDownLatch(latch)) })
	}
	return nil
}

// dismiss closes the clients when the workers have passed or given up.
func (l *startLine) dismiss() {
	l.runners.Wait()
	for _, client := range l.clients {
		closeClient(client)
	}
}

// run is a worker. It does not count as passed if the latch does not open in time.
func (l *startLine) run(ctx context.Context, latch *latchkey.CountDownLatch) {
	if latch.Await(ctx, latchkey.Wait(2*steps*l.pause+patience)) != nil {
		return
	}
	if l.done.Load() < steps {
		l.early.Add(1)
	}
	l.passed.Add(1)
}

// prepare does the preparations one by one.
func (l *startLine) prepare(ctx context.Context, latch *latchkey.CountDownLatch) error {
	for i := range steps {
		if err := pause(ctx, l.pause); err != nil {
			return err
		}
		l.done.Add(1)
		reports := 1
		if i == 1 {
			reports = 2
		}
		for range reports {
			if err := l.report(ctx, latch, i+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *startLine) report(ctx context.Context, latch *latchkey.CountDownLatch, step int) error {
	waiting := l.stage.workers - int(l.passed.Load()) // before the latch may open
	left, err := latch.CountDownAs(ctx, fmt.Sprintf("preparation %d", step))
	if errors.Is(err, latchkey.ErrNotSet) || errors.Is(err, latchkey.ErrGone) {
		return exitWith(exitProofFailed, "PROOF FAILED: %w", plainError{err})
	}
	if err != nil {
		return libraryError(err)
	}
	l.stage.tell("preparation %d is reported, %d to go; %d workers wait", step, left, waiting)
	return nil
}

func (l *startLine) prove() *proof {
	passed, early := l.passed.Load(), l.early.Load()
	return &proof{
		holds: early == 0 && passed == int64(l.stage.workers) && l.done.Load() == steps,
		text: fmt.Sprintf("%d of %d workers passed the latch, %d of them too early",
			passed, l.stage.workers, early),
	}
}
