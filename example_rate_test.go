package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
)

// All processes together call an API at most 100 times in a second, 10 of them at once.
func ExampleRateLimiter() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	budget := client.NewRateLimiter("api", latchkey.Rate{N: 100, Per: time.Second, Burst: 10})
	began := time.Now()
	for range 30 {
		if err := budget.Wait(ctx); err != nil { // when it is this process's turn
			log.Fatal(err)
		}
	}
	fmt.Println("20 calls had to wait for their turns:", time.Since(began) >= 190*time.Millisecond)
	// Output: 20 calls had to wait for their turns: true
}

// A server that refuses requests instead of waiting: each user has a limiter of its own.
func ExampleRateLimiter_Allow() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	perUser := latchkey.Rate{N: 2, Per: time.Minute}
	for range 3 {
		allowed, err := client.NewRateLimiter("login:ann", perUser).Allow(ctx)
		fmt.Println(allowed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

// Work that turns out to be unnecessary gives its requests back.
func ExampleReservation() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	budget := client.NewRateLimiter("mails", latchkey.Rate{N: 60, Per: time.Hour})
	reserved, err := budget.ReserveN(ctx, 60)
	if err != nil {
		log.Fatal(err)
	}
	later, err := budget.ReserveN(ctx, 30)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reserved.Delay(), later.Delay().Round(time.Minute))
	fmt.Println(later.Cancel(ctx))

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fmt.Println(errors.Is(budget.WaitN(ctx, 30), latchkey.ErrNotAcquired)) // the deadline would come first
	// Output:
	// 0s 30m0s
	// <nil>
	// true
}

// A rate that is set counts at once for all processes, also for those with another one.
func ExampleRate() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	budget := client.NewRateLimiter("api", latchkey.Rate{N: 10, Per: time.Second})
	if err := budget.SetRate(ctx, latchkey.Rate{N: 5, Per: time.Second, Burst: 2}); err != nil {
		log.Fatal(err)
	}
	state, err := budget.Inspect(ctx)
	fmt.Println(state.Rate, state.Available, err)
	// Output: 5/1s burst 2 2 <nil>
}
