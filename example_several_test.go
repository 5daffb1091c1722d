package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// A MultiLock locks two accounts together, in whichever order the program names them.
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

// Member returns the hold of one lock of a MultiLock. That hold has the fencing token of the lock.
func ExampleHold_Member() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	both := latchkey.NewMultiLock(client.NewFencedLock("account:1"), client.NewFencedLock("account:2"))
	err := both.Do(ctx, func(ctx context.Context) error {
		hold := both.HoldFrom(ctx)
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

// A RedLock needs a majority of independent servers: it survives the loss of one of three.
func ExampleNewRedLock() {
	ctx := context.Background()
	var members []latchkey.Locker
	var servers []*testredis.Server
	for range 3 {
		server := startServer()
		defer server.Close()
		servers = append(servers, server)
		client := connect(server.URL(), latchkey.Options{RetryBudget: time.Second})
		defer func() { _ = client.Close(ctx) }()
		members = append(members, client.NewLock("orders:42"))
	}
	lock := latchkey.NewRedLock(latchkey.RedLockOptions{}, members...)
	servers[0].Close()
	fmt.Println("two of three:", lock.Do(ctx, func(context.Context) error { return nil }))
	servers[1].Close()
	_, err := lock.TryLock(ctx)
	fmt.Println("one of three:", errors.Is(err, latchkey.ErrUnavailable))
	// Output:
	// two of three: <nil>
	// one of three: true
}

// With LazyConnect, a program starts although one of the three servers is down.
func ExampleNewRedLock_lazyConnect() {
	ctx := context.Background()
	var members []latchkey.Locker
	for i := range 3 {
		server := startServer()
		defer server.Close()
		if i == 0 {
			server.Close() // it is down when the program starts
		}
		client, err := latchkey.Connect(ctx, server.URL(), latchkey.Options{LazyConnect: true})
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = client.Close(ctx) }()
		members = append(members, client.NewLock("orders:42"))
	}
	lock := latchkey.NewRedLock(latchkey.RedLockOptions{}, members...)
	fmt.Println(lock.Do(ctx, func(context.Context) error { return nil }))
	// Output: <nil>
}

// Servers in other regions need more time for each attempt, and longer pauses between attempts.
func ExampleRedLockOptions() {
	client, done := embedded()
	defer done()

	options := latchkey.RedLockOptions{MemberTimeout: 300 * time.Millisecond, RetryDelay: time.Second}
	lock := latchkey.NewRedLock(options, client.NewLock("a"), client.NewLock("b"), client.NewLock("c"))
	fmt.Println(lock.Do(context.Background(), func(context.Context) error { return nil }))
	// Output: <nil>
}
