package latchkey_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Workers wait at a wait queue until all services have started. A service that is restarted counts once.
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
	for _, service := range []string{"cache", "cache", "database"} { // the cache was restarted
		if service == "database" || started.Load() == 0 {
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

// Workers go through the steps of a job together: nobody begins a step before all are done with
// the one before, and one of them reports.
func ExampleBarrier() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	var finished atomic.Int32
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			phase := client.NewBarrier("job:42", 3)
			for step := 1; step <= 2; step++ {
				finished.Add(1) // the work
				arrival, err := phase.Await(ctx, latchkey.Wait(time.Minute))
				if err != nil {
					log.Fatal(err)
				}
				if arrival.Last() {
					fmt.Println("step", step, "is done by", finished.Load())
				}
				if _, err = phase.Await(ctx, latchkey.Wait(time.Minute)); err != nil { // until that is told
					log.Fatal(err)
				}
			}
		})
	}
	workers.Wait()
	// Output:
	// step 1 is done by 3
	// step 2 is done by 6
}
