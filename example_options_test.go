package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
)

// A function of your own can take options and pass them on.
func ExampleLockOption() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	charge := func(order string, options ...latchkey.LockOption) error {
		return client.NewLock("orders:"+order).Do(ctx, func(context.Context) error { return nil }, options...)
	}
	fmt.Println(charge("42", latchkey.Wait(5*time.Second), latchkey.MaxHold(time.Minute)))
	// Output: <nil>
}

// With a negative Turn each hold begins and ends on the server: other processes see every holder.
func ExampleTuning() {
	ctx := context.Background()
	server := startServer()
	defer server.Close()

	options := latchkey.Options{Label: "worker", Tuning: latchkey.Tuning{Turn: -1}}
	client, err := latchkey.Connect(ctx, "redis://"+server.Addr(), options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Label(), client.Close(ctx))
	// Output: worker <nil>
}

// Wait limits how long Lock waits. Without it, Lock waits until its context ends.
func ExampleWait() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	lock := client.NewLock("orders:42")
	if _, err := lock.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	_, err := lock.Lock(ctx, latchkey.Wait(500*time.Millisecond))
	fmt.Println("busy:", errors.Is(err, latchkey.ErrNotAcquired))
	// Output: busy: true
}

// A hold with a fixed lease is not renewed: it ends when the lease does.
func ExampleLease() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	hold, err := client.NewLock("orders:42").Lock(ctx, latchkey.Lease(500*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	<-hold.Context(ctx).Done()
	fmt.Println("lost:", errors.Is(hold.Unlock(ctx), latchkey.ErrLost))
	// Output: lost: true
}

// The hold is renewed, but not forever: after MaxHold, work that hangs loses the lock.
func ExampleMaxHold() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	err := client.NewLock("orders:42").Do(ctx, func(ctx context.Context) error {
		<-ctx.Done() // work that hangs
		return nil
	}, latchkey.MaxHold(500*time.Millisecond))
	fmt.Println("too long:", errors.Is(err, latchkey.ErrMaxHold))
	// Output: too long: true
}

// Wait limits how long Acquire waits for free permits.
func ExampleAcquireOption() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	options := []latchkey.AcquireOption{latchkey.Wait(500 * time.Millisecond), latchkey.AwaitSet()}
	err := client.NewSemaphore("slots").Acquire(ctx, options...)
	fmt.Println("nobody has set it:", errors.Is(err, latchkey.ErrNotSet))
	// Output: nobody has set it: true
}

// A worker that starts before the program that sets the permits waits until they are set.
func ExampleAwaitSet() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("pool")
	acquired := make(chan error)
	go func() {
		_, err := pool.Acquire(ctx, latchkey.AwaitSet())
		acquired <- err
	}()
	if _, err := pool.TrySetPermits(ctx, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-acquired)
	// Output: <nil>
}

// Redisson deletes a latch when it opens, so a later Await finds no latch. UnsetIsOpen treats that
// as open.
func ExampleUnsetIsOpen() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	fmt.Println(client.NewCountDownLatch("ready").Await(ctx, latchkey.UnsetIsOpen()))
	// Output: <nil>
}

// A job sets up a pool that expires on its own, even if the job is killed.
func ExampleTTL() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	set, err := client.NewPermitSemaphore("job:42:workers").TrySetPermits(ctx, 8, latchkey.TTL(24*time.Hour))
	fmt.Println(set, err)
	// Output: true <nil>
}

// MaxHold limits how long a permit is held.
func ExamplePermitOption() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("pool")
	if _, err := pool.TrySetPermits(ctx, 1); err != nil {
		log.Fatal(err)
	}
	options := []latchkey.PermitOption{latchkey.Wait(5 * time.Second), latchkey.MaxHold(time.Minute)}
	fmt.Println(pool.Do(ctx, func(context.Context) error { return nil }, options...))
	// Output: <nil>
}

// Try methods accept no Wait: the code would not compile.
func ExampleTryPermitOption() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("pool")
	if _, err := pool.TrySetPermits(ctx, 1); err != nil {
		log.Fatal(err)
	}
	_, err := pool.TryAcquire(ctx, latchkey.Lease(time.Minute))
	fmt.Println(err)
	// Output: <nil>
}

// A party gives up if the others do not come. That breaks the generation for all parties that wait.
func ExampleBarrier_Await() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	_, err := client.NewBarrier("phase", 2).Await(ctx, latchkey.Wait(500*time.Millisecond))
	fmt.Println("nobody else came:", errors.Is(err, latchkey.ErrNotAcquired))
	// Output: nobody else came: true
}

// With replicas that confirm each hold, a failover to one of them keeps the hold.
func ExampleReplicas() {
	options := latchkey.Options{Replicas: latchkey.Replicas{Min: 1, Timeout: 500 * time.Millisecond}}
	fmt.Println("replicas that confirm:", options.Replicas.Min)
	// Pass the options to Connect. ErrNotReplicated reports that too few replicas confirmed.
	// Output: replicas that confirm: 1
}
