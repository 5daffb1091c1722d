package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Ten jobs run, at most three at once, no matter how many processes run them.
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
	state, err := pool.Inspect(ctx)
	fmt.Println(jobs.Load(), "jobs, at most three at once:", most.Load() <= 3)
	fmt.Println(state.Available, "permits are free again", err)
	// Output:
	// 10 jobs, at most three at once: true
	// 3 permits are free again <nil>
}

// One process acquires a permit. Another process that knows its ID releases it.
func ExamplePermitSemaphore_release() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("licenses")
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

// A Semaphore counts permits that have no owner: anyone may release, and a crash does not give
// permits back.
func ExampleSemaphore() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	slots := client.NewSemaphore("slots")
	if _, err := slots.TrySetPermits(ctx, 2); err != nil {
		log.Fatal(err)
	}
	if err := slots.AcquireN(ctx, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one more:", !errors.Is(slots.TryAcquire(ctx), latchkey.ErrNotAcquired))
	fmt.Println(slots.ReleaseN(ctx, 2))
	// Output:
	// one more: false
	// <nil>
}

// Inspect reads Total and Available together, in one step.
func ExampleSemaphore_Inspect() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	slots := client.NewSemaphore("slots")
	if _, err := slots.TrySetPermits(ctx, 5, latchkey.TTL(time.Hour)); err != nil {
		log.Fatal(err)
	}
	if err := slots.AcquireN(ctx, 2); err != nil {
		log.Fatal(err)
	}
	state, err := slots.Inspect(ctx)
	fmt.Println(state.Available, "of", state.Total, err)
	// Output: 3 of 5 <nil>
}

// PermitFrom returns the permit from the context that Do passes to its function.
func ExamplePermit() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("pool")
	if _, err := pool.TrySetPermits(ctx, 3); err != nil {
		log.Fatal(err)
	}
	err := pool.Do(ctx, func(ctx context.Context) error {
		permit := latchkey.PermitFrom(ctx)
		fmt.Println("the permit is held:", permit.Err() == nil && permit.ValidFor() > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// the permit is held: true
	// <nil>
}

// Release reports the outcome for each permit.
func ExamplePermitState() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("pool")
	if _, err := pool.TrySetPermits(ctx, 1); err != nil {
		log.Fatal(err)
	}
	permit, err := pool.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	states, err := pool.Release(ctx, permit.ID())
	fmt.Println(states[0] == latchkey.PermitReleased, states[0], err)
	// Output: true released <nil>
}

// Inspect shows how busy a pool is.
func ExamplePermitSemaphore_Inspect() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("pool")
	if _, err := pool.TrySetPermits(ctx, 4); err != nil {
		log.Fatal(err)
	}
	if _, err := pool.AcquireN(ctx, 3); err != nil {
		log.Fatal(err)
	}
	state, err := pool.Inspect(ctx)
	fmt.Printf("%d of %d in use %v\n", state.HolderCount, state.Total, err)
	// Output: 3 of 4 in use <nil>
}

// A large request gets its permits although small ones keep coming: no request overtakes it.
func ExampleClient_NewFairSemaphore() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	gpus := client.NewFairSemaphore("gpus")
	if _, err := gpus.TrySetPermits(ctx, 4); err != nil {
		log.Fatal(err)
	}
	small, err := gpus.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	large := make(chan error)
	go func() {
		permits, err := gpus.AcquireN(ctx, 4)
		for _, p := range permits {
			err = errors.Join(err, p.Release(ctx))
		}
		large <- err
	}()
	for {
		waiters, err := gpus.Waiters(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if len(waiters) == 1 {
			fmt.Println("one waits for", waiters[0].Permits)
			break
		}
	}
	_, err = gpus.TryAcquire(ctx) // three are free
	fmt.Println("a small one has to wait:", errors.Is(err, latchkey.ErrNotAcquired))
	fmt.Println(small.Release(ctx), <-large)
	// Output:
	// one waits for 4
	// a small one has to wait: true
	// <nil> <nil>
}
