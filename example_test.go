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
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// embedded stands for a Redis server in the examples, so that they run anywhere. A
// program calls latchkey.Connect(ctx, "redis://localhost:6379", latchkey.Options{}) instead.
func embedded() (*latchkey.Client, func()) {
	server, err := latchkeytest.Start()
	if err != nil {
		log.Fatal(err)
	}
	return server.Client(), server.Close
}

// A critical section across processes.
func Example() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	orders := client.NewLock("orders:42") // no state: share it freely
	err := orders.Do(ctx, func(ctx context.Context) error {
		fmt.Println("charging order 42") // ctx ends if the lock is lost
		return ctx.Err()
	})
	fmt.Println("done:", err)
	// Output:
	// charging order 42
	// done: <nil>
}

// Only one process does the work; the others do not wait.
func ExampleLocker_tryLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	report := client.NewLock("nightly-report")
	for range 2 {
		hold, err := report.TryLock(ctx)
		switch {
		case errors.Is(err, latchkey.ErrNotAcquired):
			fmt.Println("somebody else is at it")
		case err != nil:
			fmt.Println("trouble:", err)
		default:
			defer func() { _ = hold.Unlock(ctx) }()
			fmt.Println("writing the report")
		}
	}
	// Output:
	// writing the report
	// somebody else is at it
}

// A store that remembers the largest token refuses a holder that was replaced
// without knowing it yet.
func ExampleFencedLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	var largest int64
	write := func(token int64, text string) {
		if token < largest {
			fmt.Println("refused:", text)
			return
		}
		largest = token
		fmt.Println("written:", text)
	}

	account := client.NewFencedLock("account:7")
	slow, _ := account.Lock(ctx, latchkey.Lease(10*time.Millisecond))
	<-slow.Lost() // a pause longer than the lease
	quick, err := account.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	write(quick.Token(), "by the new holder")
	write(slow.Token(), "by the old one")
	fmt.Println(quick.Unlock(ctx), errors.Is(slow.Unlock(ctx), latchkey.ErrLost))
	// Output:
	// written: by the new holder
	// refused: by the old one
	// <nil> true
}

// Code that is called under a lock takes the same lock again.
func ExampleHold_Context() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	stock := client.NewLock("stock")
	reserve := func(ctx context.Context) error {
		return stock.Do(ctx, func(context.Context) error { return nil })
	}
	hold, err := stock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = hold.Unlock(ctx) }()
	fmt.Println("under the hold:", reserve(hold.Context(ctx)))

	brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	fmt.Println("beside it:", errors.Is(reserve(brief), latchkey.ErrNotAcquired))
	// Output:
	// under the hold: <nil>
	// beside it: true
}

// A lock for code that expects a sync.Locker.
func ExampleSyncLocker() {
	client, done := embedded()
	defer done()

	mu := latchkey.SyncLocker(context.Background(), client.NewMutex("cache"))
	mu.Lock()
	fmt.Println("inside")
	mu.Unlock()
	// Output: inside
}

// A fair lock is granted in the order in which it was asked for.
func ExampleFairLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	desk := client.NewFairLock("ticket-desk")
	hold, err := desk.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var served sync.WaitGroup
	for _, customer := range []string{"first", "second", "third"} {
		before, _ := desk.Waiters(ctx)
		served.Go(func() {
			_ = desk.Do(ctx, func(context.Context) error {
				fmt.Println(customer)
				return nil
			})
		})
		for waiting := before; len(waiting) == len(before); {
			waiting, _ = desk.Waiters(ctx) // until the customer is in the queue
		}
	}
	if err := hold.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	served.Wait()
	// Output:
	// first
	// second
	// third
}

// A writer goes on reading what it has written, and nobody writes in between.
func ExampleHold_Downgrade() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	config := client.NewRWLock("config")
	write, err := config.Writer().Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = config.Reader().TryLock(ctx)
	fmt.Println("others read:", !errors.Is(err, latchkey.ErrNotAcquired))

	read, err := write.Downgrade(ctx)
	if err != nil {
		log.Fatal(err)
	}
	other, err := config.Reader().TryLock(ctx)
	fmt.Println("others read:", err == nil)
	_, err = config.Writer().TryLock(read.Context(ctx))
	fmt.Println("a reader writes:", !errors.Is(err, latchkey.ErrUpgrade))
	fmt.Println(other.Unlock(ctx), read.Unlock(ctx))
	// Output:
	// others read: false
	// others read: true
	// a reader writes: false
	// <nil> <nil>
}

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
			permit, err := pool.Acquire(ctx)
			if err != nil {
				log.Fatal(err)
			}
			defer func() { _ = permit.Release(ctx) }()
			if now := inside.Add(1); now > most.Load() {
				most.Store(now)
			}
			jobs.Add(1) // the job, under permit.Context(ctx)
			inside.Add(-1)
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

// A permit that one process has taken is given back by another, which has its id.
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

// Workers wait at a gate until everything that they need has started.
func Example_startupGate() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	gate := client.NewCountDownLatch("started")
	if _, err := gate.TrySetCount(ctx, 2); err != nil {
		log.Fatal(err)
	}
	var started atomic.Int32
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			if err := gate.Await(ctx); err != nil {
				log.Fatal(err)
			}
			fmt.Println("a worker begins, with", started.Load(), "services")
		})
	}
	for _, service := range []string{"database", "cache", "cache"} { // the cache was restarted
		if service != "cache" || started.Load() < 2 {
			started.Add(1)
		}
		if _, err := gate.CountDownAs(ctx, service); err != nil {
			log.Fatal(err)
		}
	}
	workers.Wait()
	// Output:
	// a worker begins, with 2 services
	// a worker begins, with 2 services
	// a worker begins, with 2 services
}

// Two accounts are locked together, in whichever order the program names them.
func ExampleMultiLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	transfer := func(from, to string) error {
		both := latchkey.NewMultiLock(client.NewLock(from), client.NewLock(to))
		return both.Do(ctx, func(context.Context) error { return nil })
	}
	var transfers sync.WaitGroup
	for range 10 {
		transfers.Go(func() { fmt.Print(transfer("a", "b"), " ") })
		transfers.Go(func() { fmt.Print(transfer("b", "a"), " ") })
	}
	transfers.Wait()
	// Output: <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil> <nil>
}
