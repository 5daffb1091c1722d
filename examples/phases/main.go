// Command phases runs a computation in phases with three workers in three pods. A phase begins when
// all workers have finished the previous one, because each worker needs the results of the others.
//
//	go run ./examples/phases
//
// The workers wait at a latchkey.Barrier. In the second phase a worker dies before it arrives.
// Another worker takes its place and breaks the phase, the waiting workers get ErrBroken, and all
// do that phase again.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

const (
	name    = "phases:sums"
	workers = 3
	phases  = 3
)

var errDied = errors.New("the worker has died")

// computation has the result of each worker in each phase. In a real program these are rows of a
// database.
type computation struct {
	found  [phases + 1][workers]int
	broken atomic.Int32 // how often a worker got ErrBroken
}

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	pods, err := f.Pods(ctx, workers+1, latchkey.Options{})
	if err != nil {
		return err
	}
	c := computation{found: [phases + 1][workers]int{{1, 2, 3}}}
	errs := make(chan error, workers)
	var all sync.WaitGroup
	for i, pod := range pods[:workers-1] {
		all.Go(func() { errs <- c.work(ctx, pod, i, 1, nil) })
	}

	// The last worker dies in the second phase, while the others wait for it.
	const last = workers - 1
	dies := func(phase int) bool { return phase == 2 }
	if err := c.work(ctx, pods[last], last, 1, dies); !errors.Is(err, errDied) {
		return err
	}
	spare := pods[workers].NewBarrier(name, workers)
	if err := waiting(ctx, spare, workers-1); err != nil {
		return err
	}
	fmt.Println("a worker dies in phase 2")

	// A barrier does not learn of a worker that died before it arrived: the replacement breaks the
	// phase.
	if err := spare.Reset(ctx); err != nil {
		return err
	}
	errs <- c.work(ctx, pods[workers], last, 2, nil) // a real program reads the phase from its database
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	fmt.Println("both other workers get an error:", c.broken.Load() == workers-1)
	return nil
}

// work does the phases of a worker, beginning with phase.
func (c *computation) work(ctx context.Context, pod *latchkey.Client, worker, phase int, dies func(phase int) bool) error {
	barrier := pod.NewBarrier(name, workers)
	for phase <= phases {
		if dies != nil && dies(phase) {
			return errDied
		}
		before := &c.found[phase-1]
		c.found[phase][worker] = before[worker] + before[(worker+1)%workers]

		// The Wait limits the time if a worker dies and nobody replaces it.
		arrival, err := barrier.Await(ctx, latchkey.Wait(30*time.Second))
		switch {
		case errors.Is(err, latchkey.ErrBroken): // the phase ended for all parties: the next Await starts over
			c.broken.Add(1)
			continue
		case err != nil: // ErrNotAcquired: not all arrived in time. A barrier has no hold, so there is no ErrLost
			return err
		}
		if arrival.Last() { // true for one worker; the next phase cannot end before that worker arrives again
			fmt.Println("phase", phase, "is done:", c.found[phase])
		}
		phase++
	}
	return nil
}

// waiting waits until n workers are at the barrier.
func waiting(ctx context.Context, barrier *latchkey.Barrier, n int) error {
	for {
		state, err := barrier.State(ctx)
		if err != nil || state.Waiting >= n {
			return err
		}
		time.Sleep(time.Millisecond) // there is no event for a party that arrives
	}
}
