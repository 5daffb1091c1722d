package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Inspect shows the state of a lock. ForceUnlock frees it from a holder that is gone.
func ExampleClient_Inspect() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	if _, err := client.NewLock("orders:42").Lock(ctx, latchkey.Lease(time.Hour)); err != nil {
		log.Fatal(err)
	}
	seen, err := client.Inspect(ctx, "orders:42")
	fmt.Println(seen.Kind, seen.Locked(), len(seen.Holders), err)
	freed, err := client.ForceUnlock(ctx, "orders:42")
	fmt.Println("freed:", freed, err)
	// Output:
	// lock true 1 <nil>
	// freed: true <nil>
}

// Holder says who holds a lock, and how often that owner has entered it.
func ExampleHolder() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	lock := client.NewLock("orders:42")
	err := lock.Do(ctx, func(ctx context.Context) error {
		return lock.Do(ctx, func(ctx context.Context) error {
			seen, err := lock.Inspect(ctx)
			if err != nil {
				return err
			}
			holder := seen.Holders[0]
			fmt.Println("it is me:", holder.Owner == lock.HoldFrom(ctx).Owner(), "entered:", holder.Count)
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// it is me: true entered: 2
	// <nil>
}

// Waiters lists the waiters of a fair lock in order.
func ExampleWaiter() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	desk := client.NewFairLock("desk")
	hold, err := desk.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- desk.Do(ctx, func(context.Context) error { return nil }) }()
	var waiters []latchkey.Waiter
	for len(waiters) == 0 {
		if waiters, err = client.Waiters(ctx, "desk"); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(len(waiters), "waits, and is alive:", waiters[0].Alive > 0)
	fmt.Println(hold.Unlock(ctx), <-served)
	// Output:
	// 1 waits, and is alive: true
	// <nil> <nil>
}

// Object describes one object on the server.
func ExampleObject() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	if _, err := client.NewSemaphore("slots").TrySetPermits(ctx, 4); err != nil {
		log.Fatal(err)
	}
	object, err := client.Inspect(ctx, "slots")
	fmt.Println(object.Kind, object.Available, "of", object.Total, err)
	// Output: semaphore 4 of 4 <nil>
}

// Kind says what kind of object a name belongs to.
func ExampleKind() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	if _, err := client.NewMutex("report").Lock(ctx); err != nil {
		log.Fatal(err)
	}
	seen, err := client.Inspect(ctx, "report")
	fmt.Println(seen.Kind == latchkey.KindMutex, seen.Kind, err)
	_, err = client.NewLock("report").TryLock(ctx)
	fmt.Println("a lock of that name:", !errors.Is(err, latchkey.ErrWrongKind))
	// Output:
	// true mutex <nil>
	// a lock of that name: false
}

// The observer receives an event for whatever happens to a lock, for your own metrics, traces and
// logs. The module latchkeyotel provides an observer for OpenTelemetry.
func ExampleEvent() {
	ctx := context.Background()
	server := startServer()
	defer server.Close()
	events := make(chan latchkey.Event, 10)
	client := connect(server.URL(), latchkey.Options{Observer: func(e latchkey.Event) { events <- e }})
	err := client.NewLock("orders:42").Do(ctx, func(context.Context) error { return nil })
	_ = client.Close(ctx) // after Close, all events have been delivered
	close(events)
	for e := range events {
		fmt.Println(e.Type, e.Kind, e.Name)
	}
	fmt.Println(err)
	// Output:
	// attempt lock orders:42
	// acquired lock orders:42
	// released lock orders:42
	// <nil>
}

// An EventType prints as words.
func ExampleEventType() {
	fmt.Println(latchkey.EventLost, latchkey.EventRenewalFailed)
	// Output: lost renewal_failed
}

// One process hands its hold to another: the second enters with the owner of the first, and then
// the first unlocks.
func ExampleOwner() {
	ctx := context.Background()
	server := startServer()
	defer server.Close()
	one, other := connect(server.URL(), latchkey.Options{}), connect(server.URL(), latchkey.Options{})
	defer func() { _ = errors.Join(one.Close(ctx), other.Close(ctx)) }()
	first, second := one.NewLock("upload:7"), other.NewLock("upload:7")

	hold, err := first.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	text := hold.Share().String() // the program sends it in a message
	owner, err := latchkey.ParseOwner(text)
	if err != nil {
		log.Fatal(err)
	}
	guest, err := second.TryLock(ctx, latchkey.As(owner))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hold.Unlock(ctx))
	seen, err := first.Inspect(ctx)
	fmt.Println("still locked:", seen.Locked(), err)
	fmt.Println(guest.Unlock(ctx))
	// Output:
	// <nil>
	// still locked: true <nil>
	// <nil>
}

// Code that cannot pass on the context of a hold re-enters with a common owner.
func ExampleWithOwner() {
	client, done := embedded()
	defer done()

	stock := client.NewLock("stock")
	task := latchkey.WithOwner(context.Background(), client.NewOwner()) // one logical task
	outer, err := stock.Lock(task)
	if err != nil {
		log.Fatal(err)
	}
	inner, err := stock.TryLock(task)
	fmt.Println(err)
	fmt.Println(inner.Unlock(task), outer.Unlock(task))
	// Output:
	// <nil>
	// <nil> <nil>
}

// Holders lists the permits of a pool that are held, with the label and the note of each holder.
func ExamplePermitHolder() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	pool := client.NewPermitSemaphore("licenses")
	if _, err := pool.TrySetPermits(ctx, 2); err != nil {
		log.Fatal(err)
	}
	permit, err := pool.Acquire(ctx, latchkey.Note("report 7"))
	if err != nil {
		log.Fatal(err)
	}
	holders, err := pool.Holders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range holders {
		fmt.Println(h.ID == permit.ID(), h.Label == client.Label(), h.Note)
	}
	fmt.Println(permit.Release(ctx))
	// Output:
	// true true report 7
	// <nil>
}
