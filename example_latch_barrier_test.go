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

// Workers wait at a latch until all services have started. A service that restarts counts only
// once.
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

// Workers go through the steps of a job together: no worker begins a step before all have finished
// the previous one. The last to arrive reports.
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
				if _, err = phase.Await(ctx, latchkey.Wait(time.Minute)); err != nil { // until the report is printed
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

// A latch opens when its count reaches zero, and stays open.
func ExampleCountDownLatch() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	ready := client.NewCountDownLatch("warehouse:ready")
	fmt.Println("nobody has set it:", errors.Is(ready.Await(ctx), latchkey.ErrNotSet))
	if _, err := ready.TrySetCount(ctx, 1, latchkey.TTL(time.Hour)); err != nil {
		log.Fatal(err)
	}
	left, err := ready.CountDown(ctx)
	fmt.Println(left, err)
	fmt.Println(ready.Await(ctx))
	// Output:
	// nobody has set it: true
	// 0 <nil>
	// <nil>
}

// The last party of a generation does the work that must be done once.
func ExampleArrival() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	alone := client.NewBarrier("alone", 1)
	arrival, err := alone.Await(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if arrival.Last() {
		fmt.Println("the last of", alone.Parties())
	}
	// Output: the last of 1
}

// State lists the waiting parties, and how long each still counts if its client sends nothing more.
func ExampleBarrierParty() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	phase := client.NewBarrier("phase", 2)
	var parties sync.WaitGroup
	parties.Go(func() { _, _ = phase.Await(ctx) })
	state, err := phase.State(ctx)
	for err == nil && state.Waiting == 0 {
		state, err = phase.State(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(state.Waiting, "of", state.Parties)
	fmt.Println("has a lease:", state.Who[0].Lease > 0)
	_, err = phase.Await(ctx)
	parties.Wait()
	fmt.Println(err)
	// Output:
	// 1 of 2
	// has a lease: true
	// <nil>
}

// Before the first party arrives, a barrier does not fix the number of parties.
func ExampleBarrierState() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	state, err := client.NewBarrier("phase", 2).State(ctx)
	fmt.Println(state.Waiting, "wait; parties are fixed:", state.Parties > 0, err)
	// Output: 0 wait; parties are fixed: false <nil>
}
