// Command buildslots shares three slots among builds. Some builds need one slot, others need all.
// Builds get their slots in the order of their requests, so that later small builds do not starve a
// large one.
//
//	go run ./examples/buildslots
//
// The slots are permits of a fair semaphore. The example also shows that a build that stops waiting
// makes way for the next one.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

const (
	name  = "build:slots"
	slots = 3
)

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	pods, err := f.Pods(ctx, 3, latchkey.Options{})
	if err != nil {
		return err
	}
	pool := pods[0].NewFairSemaphore(name)
	// Each pod may call this when it starts: only the first one sets the number.
	if _, err := pool.TrySetPermits(ctx, slots); err != nil {
		return err
	}
	if err := inOrder(ctx, pods); err != nil {
		return err
	}
	if err := givesUp(ctx, pods); err != nil {
		return err
	}
	_, err = pool.Delete(ctx) // only for the example: keep your own pool
	return err
}

// inOrder makes a large build wait, and then small ones behind it.
func inOrder(ctx context.Context, pods []*latchkey.Client) error {
	pool := pods[0].NewFairSemaphore(name)
	running, err := pool.Acquire(ctx) // a build takes one of the slots, so a queue forms
	if err != nil {
		return err
	}
	line := []struct {
		build string
		slots int
	}{{"release", slots}, {"docs", 2}, {"fix", 2}}
	errs := make(chan error, len(line))
	var all sync.WaitGroup
	for i, b := range line {
		place := pods[i%len(pods)].NewFairSemaphore(name)
		all.Go(func() { errs <- build(ctx, place, b.build, b.slots) })
		if err := fleet.InLine(ctx, pool, i+1); err != nil { // the next build must come later
			return err
		}
	}
	state, err := pool.Inspect(ctx)
	if err != nil {
		return err
	}
	fmt.Println("two slots are free, and no build takes them out of turn:", state.Available == 2)

	if err := running.Release(ctx); err != nil {
		return err
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil { // on ErrLost the build stopped halfway: start it again
			return err
		}
	}
	return nil
}

// givesUp makes a large build give up, which lets the small build behind it begin.
func givesUp(ctx context.Context, pods []*latchkey.Client) error {
	pool := pods[0].NewFairSemaphore(name)
	running, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	nightly, lint := make(chan error, 1), make(chan error, 1)
	go func() {
		nightly <- build(ctx, pods[1].NewFairSemaphore(name), "nightly", slots, latchkey.Wait(time.Second))
	}()
	if err := fleet.InLine(ctx, pool, 1); err != nil {
		return err
	}
	go func() { lint <- build(ctx, pods[2].NewFairSemaphore(name), "lint", 1) }()

	err = <-lint // it begins although the first build still runs
	fmt.Println("nightly has left the queue:", errors.Is(<-nightly, latchkey.ErrNotAcquired))
	return errors.Join(err, running.Release(ctx))
}

// build acquires n slots at once, and builds.
func build(ctx context.Context, pool *latchkey.PermitSemaphore, build string, n int, options ...latchkey.PermitOption) (err error) {
	permits, err := pool.AcquireN(ctx, n, options...)
	if err != nil {
		return err // ErrNotAcquired: its turn did not come in time
	}
	defer func() {
		for _, p := range permits {
			err = errors.Join(err, p.Release(ctx)) // ErrLost: the slot was lost during the build
		}
	}()
	working := under(ctx, permits)
	fmt.Println(build, "builds, slots:", n)
	select {
	case <-time.After(20 * time.Millisecond): // the work
		return nil
	case <-working.Done(): // a slot is lost, or the program ends
		return context.Cause(working)
	}
}

// under returns a context that ends when one of the permits is lost.
func under(ctx context.Context, permits []*latchkey.Permit) context.Context {
	if len(permits) == 0 {
		return ctx
	}
	return under(permits[0].Context(ctx), permits[1:])
}
