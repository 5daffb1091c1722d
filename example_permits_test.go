package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey"
)

// Ten jobs, and at most three at once, in however many processes.
func Example_workerPool() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("workers")
	if _, err := pool.TrySetPermits(ctx, 3); err != nil {
		log.Fatal(err)
	}
	var inside, most, jobs atomic.Int32
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			err := pool.Do(ctx, func(context.Context) error { // its context ends if the permit is lost
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				jobs.Add(1)
				inside.Add(-1)
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
		})
	}
	workers.Wait()
	stats, err := pool.Stats(ctx)
	fmt.Println(jobs.Load(), "jobs, at most three at once:", most.Load() <= 3)
	fmt.Println(stats.Available, "permits are free again", err)
	// Output:
	// 10 jobs, at most three at once: true
	// 3 permits are free again <nil>
}

// One process acquires a permit, and another, which has its id, releases it.
func ExamplePermitSemaphore_Release() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("licences")
	if _, err := pool.TrySetPermits(ctx, 1); err != nil {
		log.Fatal(err)
	}
	permit, err := pool.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	states, err := pool.Release(ctx, permit.ID())
	fmt.Println(states, err)
	states, err = pool.Release(ctx, permit.ID())
	fmt.Println(states, errors.Is(err, latchkey.ErrNotHeld))
	// Output:
	// [released] <nil>
	// [unknown] true
}
