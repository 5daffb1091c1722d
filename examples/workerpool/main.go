// Command workerpool runs twelve jobs in three pods with four workers each, at most three jobs at
// once in all pods together. The limit stands for a license with three seats, or an API that takes
// three calls at a time.
//
//	go run ./examples/workerpool
//
// Each job runs under a permit of a latchkey.PermitSemaphore, whose lease is renewed. The example
// shows what happens when no permit is free, and that the permit of a worker that hangs becomes
// free at the end of its lease.
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
	name    = "pool:seats"
	seats   = 3
	workers = 4
)

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	pods, err := f.Pods(ctx, 3, latchkey.Options{})
	if err != nil {
		return err
	}
	pool := pods[0].NewPermitSemaphore(name)
	// Each pod may call this when it starts: only the first one sets the number.
	if _, err := pool.TrySetPermits(ctx, seats); err != nil {
		return err
	}
	if err := work(ctx, pods); err != nil {
		return err
	}
	if err := full(ctx, pool); err != nil {
		return err
	}
	_, err = pool.Delete(ctx) // only for the example: keep your own pool
	return err
}

// work runs a job in each worker of each pod.
func work(ctx context.Context, pods []*latchkey.Client) error {
	var inside, jobs atomic.Int32
	var tooMany atomic.Bool
	job := func(ctx context.Context) error {
		now := inside.Add(1)
		defer inside.Add(-1)
		if now > seats {
			tooMany.Store(true)
		}
		jobs.Add(1)
		select {
		case <-time.After(20 * time.Millisecond): // the work
			return nil
		case <-ctx.Done(): // the permit is lost, or the program ends
			return context.Cause(ctx)
		}
	}
	errs := make(chan error, len(pods)*workers)
	var all sync.WaitGroup
	for _, pod := range pods {
		for range workers {
			all.Go(func() { errs <- pod.NewPermitSemaphore(name).Do(ctx, job) })
		}
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil { // on ErrLost the job stopped halfway: do it again
			return err
		}
	}
	fmt.Printf("%d jobs are done, at most three at once: %t\n", jobs.Load(), !tooMany.Load())
	return nil
}

// full takes all permits, and shows what another worker gets then.
func full(ctx context.Context, pool *latchkey.PermitSemaphore) error {
	hung, err := pool.Acquire(ctx, latchkey.Lease(time.Second)) // not renewed: its worker hangs
	if err != nil {
		return err
	}
	rest, err := pool.AcquireN(ctx, seats-1)
	if err != nil {
		return err
	}
	_, err = pool.TryAcquire(ctx)
	fmt.Println("no permit is free:", errors.Is(err, latchkey.ErrNotAcquired))

	<-hung.Lost()
	permit, err := pool.Acquire(ctx, latchkey.Wait(10*time.Second))
	if err != nil {
		return err
	}
	fmt.Println("the permit of the worker that hung was recovered:", errors.Is(hung.Err(), latchkey.ErrLost))
	for _, p := range append(rest, permit) {
		err = errors.Join(err, p.Release(ctx))
	}
	return err
}
