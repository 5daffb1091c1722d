package latchkey_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/latchkey-go/latchkey"
)

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

// The hold of several locks gives the hold of each, and so their fencing tokens.
func ExampleHold_Member() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	both := latchkey.NewMultiLock(client.NewFencedLock("account:1"), client.NewFencedLock("account:2"))
	err := both.Do(ctx, func(ctx context.Context) error {
		hold := latchkey.HoldFrom(ctx)
		for _, account := range []string{"account:1", "account:2"} {
			fmt.Println(account, "token", hold.Member(account).Token())
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// account:1 token 1
	// account:2 token 1
	// <nil>
}
