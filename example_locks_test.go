package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Every instance of a service starts a job at the same time by its own clock, but the job runs only
// once. The lock stays taken for a minute although the job takes far less, so an instance whose
// clock is behind finds it taken.
func ExampleAtLeast() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	cleanUp := func(instance string) {
		hold, err := client.NewLock("clean-up").TryLock(ctx, latchkey.AtLeast(time.Minute))
		switch {
		case errors.Is(err, latchkey.ErrNotAcquired):
			fmt.Println(instance, "has nothing to do")
			return
		case err != nil:
			fmt.Println(instance, "does not know:", err)
			return
		}
		fmt.Println(instance, "cleans up")
		if err := hold.Unlock(ctx); err != nil {
			fmt.Println(err)
		}
	}
	cleanUp("a")
	cleanUp("b") // three seconds later
	// Output:
	// a cleans up
	// b has nothing to do
}

// A store that remembers the largest token refuses a holder that lost the lock and has not noticed
// yet.
func ExampleClient_NewFencedLock() {
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
	slow, err := account.Lock(ctx, latchkey.Lease(500*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
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

// A fair lock serves its waiters in the order in which they came.
func ExampleClient_NewFairLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	desk := client.NewFairLock("ticket-desk")
	hold, err := desk.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	queue := func() int {
		waiters, err := desk.Waiters(ctx)
		if err != nil {
			log.Fatal(err)
		}
		return len(waiters)
	}
	var served sync.WaitGroup
	for i, customer := range []string{"first", "second", "third"} {
		served.Go(func() {
			err := desk.Do(ctx, func(context.Context) error {
				fmt.Println(customer)
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
		})
		for queue() <= i { // until the customer is in the queue
			time.Sleep(time.Millisecond) // no event reports a waiter
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

// A fair lock may have fencing tokens too.
func ExampleFenced() {
	client, done := embedded()
	defer done()

	desk := client.NewFairLock("ticket-desk", latchkey.Fenced())
	for range 2 {
		hold, err := desk.Lock(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("token", hold.Token(), hold.Unlock(context.Background()))
	}
	// Output:
	// token 1 <nil>
	// token 2 <nil>
}

// A writer keeps reading the data it has written, and no other writer gets in between.
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

// A mutex is one key, set with SET NX PX: programs in other languages can use the same lock.
func ExampleClient_NewMutex() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	report := client.NewMutex("report:daily")
	err := report.Do(ctx, func(ctx context.Context) error {
		_, err := report.TryLock(ctx) // nobody can re-enter a mutex, not even its holder
		fmt.Println("entered twice:", err == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// entered twice: false
	// <nil>
}

// A spin lock polls the server. Its Backoff sets the pauses between attempts.
func ExampleClient_NewSpinLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	counter := client.NewSpinLock("counter", latchkey.Backoff{Initial: time.Millisecond, Max: 50 * time.Millisecond})
	fmt.Println(counter.Do(ctx, func(context.Context) error { return nil }))
	// Output: <nil>
}

// Pauses of constant length suit a distant server.
func ExampleBackoff() {
	client, done := embedded()
	defer done()

	constant := latchkey.Backoff{Initial: 100 * time.Millisecond, Max: 100 * time.Millisecond, Multiplier: 1}
	fmt.Println(client.NewSpinLock("counter", constant).Name())
	// Output: counter
}

// Any number of readers, or one writer, hold a read/write lock.
func ExampleRWLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	config := client.NewRWLock("config")
	err := config.Reader().Do(ctx, func(context.Context) error {
		_, err := config.Writer().TryLock(context.Background()) // another process
		fmt.Println("somebody writes while others read:", !errors.Is(err, latchkey.ErrNotAcquired))
		return nil
	})
	fmt.Println(err)
	// Output:
	// somebody writes while others read: false
	// <nil>
}

// Readers do not exclude each other.
func ExampleRWLock_Reader() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	config := client.NewRWLock("config").Reader()
	first, err := config.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	second, err := config.TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Unlock(ctx), second.Unlock(ctx))
	// Output: <nil> <nil>
}

// The holder of the write lock may also acquire the read lock.
func ExampleRWLock_Writer() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	config := client.NewRWLock("config")
	err := config.Writer().Do(ctx, func(ctx context.Context) error {
		return config.Reader().Do(ctx, func(context.Context) error {
			fmt.Println("reading what was written")
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// reading what was written
	// <nil>
}

// A function that takes a Locker works with every kind of lock.
func ExampleLocker() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	nightly := func(lock latchkey.Locker) error {
		return lock.Do(ctx, func(context.Context) error {
			fmt.Println("under", lock.Name())
			return nil
		})
	}
	for _, lock := range []latchkey.Locker{client.NewLock("a"), client.NewFairLock("b"), client.NewRWLock("c").Writer()} {
		if err := nightly(lock); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// under a
	// under b
	// under c
}
