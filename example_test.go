package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// embedded connects to a server that it starts in place of Redis, so that the examples run
// anywhere. A real program calls latchkey.Connect(ctx, "redis://localhost:6379",
// latchkey.Options{}) instead.
func embedded() (client *latchkey.Client, done func()) {
	server := startServer()
	client = connect(server.URL(), latchkey.Options{})
	return client, func() {
		_ = client.Close(context.Background())
		server.Close()
	}
}

func startServer() *testredis.Server {
	server, err := testredis.Start()
	if err != nil {
		log.Fatal(err)
	}
	return server
}

func connect(url string, options latchkey.Options) *latchkey.Client {
	client, err := latchkey.Connect(context.Background(), url, options)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// A critical section across processes. Busy, unreachable and lost are different errors.
func Example() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	charge := func(ctx context.Context) error {
		fmt.Println("charging order 42")
		return ctx.Err() // ctx ends if the lock is lost
	}
	orders := client.NewLock("orders:42") // no state: share it freely
	err := orders.Do(ctx, charge, latchkey.Wait(10*time.Second))
	switch {
	case err == nil:
		fmt.Println("charged")
	case errors.Is(err, latchkey.ErrNotAcquired):
		fmt.Println("orders:42 is locked elsewhere") // 409 Conflict
	case errors.Is(err, latchkey.ErrUnavailable):
		fmt.Println("cannot reach the lock server:", err) // 503 Service Unavailable
	case errors.Is(err, latchkey.ErrLost):
		fmt.Println("lost the lock while charging:", err) // check what was done
	default:
		fmt.Println("error:", err)
	}
	// Output:
	// charging order 42
	// charged
}

// The handler answers 409 Conflict if another process holds the lock, and 503 Service Unavailable
// if the client cannot reach the lock server.
func ExampleLock_Do_http() {
	ctx := context.Background()
	server := startServer()
	client := connect(server.URL(), latchkey.Options{RetryBudget: time.Second})
	defer func() { _ = client.Close(ctx) }()
	elsewhere := connect(server.URL(), latchkey.Options{})
	pay := func(w http.ResponseWriter, r *http.Request) {
		order := client.NewLock("order:" + r.PathValue("id"))
		err := order.Do(r.Context(), func(context.Context) error {
			fmt.Fprintln(w, "paid")
			return nil
		}, latchkey.Wait(time.Second))
		switch {
		case err == nil:
		case errors.Is(err, latchkey.ErrNotAcquired):
			http.Error(w, "another request is paying for this order", http.StatusConflict)
		case errors.Is(err, latchkey.ErrUnavailable):
			w.Header().Set("Retry-After", "5")
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		default:
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /orders/{id}/pay", pay)
	post := func() int {
		answer := httptest.NewRecorder()
		routes.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/orders/42/pay", nil))
		return answer.Code
	}

	fmt.Println("free:", post())
	other, err := elsewhere.NewLock("order:42").TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("busy:", post())
	fmt.Println("given back:", other.Unlock(ctx) == nil)
	_ = elsewhere.Close(ctx)
	server.Close()
	fmt.Println("dead:", post())
	// Output:
	// free: 200
	// busy: 409
	// given back: true
	// dead: 503
}

// Only one process does the work; the others do not wait. The example keeps the error of Unlock: it
// matches ErrLost if the lock was lost during the work.
func ExampleLock_TryLock() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	report := client.NewLock("nightly-report")
	write := func() (err error) {
		hold, err := report.TryLock(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
		_, err = report.TryLock(ctx) // another process
		fmt.Println("another process gets it:", !errors.Is(err, latchkey.ErrNotAcquired))
		fmt.Println("writing the report")
		return hold.Context(ctx).Err()
	}
	fmt.Println(write())
	// Output:
	// another process gets it: false
	// writing the report
	// <nil>
}

// HoldFrom returns the hold inside Do. The hold has the fencing token.
func ExampleLock_HoldFrom() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	save := func(_ context.Context, token int64) error {
		fmt.Println("saving with token", token)
		return nil
	}
	account := client.NewFencedLock("account:8")
	err := account.Do(ctx, func(ctx context.Context) error {
		return save(ctx, account.HoldFrom(ctx).Token())
	})
	fmt.Println(err)
	// Output:
	// saving with token 1
	// <nil>
}

// Code that runs under a lock acquires the same lock again with the context of the hold.
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
	fmt.Println("under the hold:", reserve(hold.Context(ctx)))

	brief, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	fmt.Println("outside the hold:", errors.Is(reserve(brief), latchkey.ErrNotAcquired))
	fmt.Println("released:", hold.Unlock(ctx))
	// Output:
	// under the hold: <nil>
	// outside the hold: true
	// released: <nil>
}

// Objects lists the objects under a prefix, with their holders and the number of waiters.
func ExampleClient_Objects() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	hold, err := client.NewLock("orders:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = hold.Unlock(ctx) }()
	for o, err := range client.Objects(ctx, "orders:*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(o.Name, o.Kind, o.Holders[0].Owner == hold.Owner(), o.Waiters())
	}
	// Output: orders:42 lock true 0
}

// Inspect shows who holds a lock and why.
func ExampleNote() {
	ctx := context.Background()
	server := startServer()
	defer server.Close()
	client := connect(server.URL(), latchkey.Options{Label: "payments-7"})
	defer func() { _ = client.Close(ctx) }()

	hold, err := client.NewLock("account:42").Lock(ctx, latchkey.Note("order 1234"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = hold.Unlock(ctx) }()
	found, err := client.Inspect(ctx, "account:42")
	if err != nil {
		log.Fatal(err)
	}
	for _, holder := range found.Holders {
		fmt.Printf("held by %s for %s\n", holder.Label, holder.Note)
	}
	// Output: held by payments-7 for order 1234
}

// With LazyConnect a program starts while its server is down. Busy and unreachable are different
// errors.
func ExampleOptions_lazyConnect() {
	ctx := context.Background()
	client, err := latchkey.Connect(ctx, "redis://localhost:1", latchkey.Options{
		LazyConnect: true,
		RetryBudget: 50 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.NewLock("orders:42").TryLock(ctx)
	fmt.Println("busy:", errors.Is(err, latchkey.ErrNotAcquired))
	fmt.Println("unavailable:", errors.Is(err, latchkey.ErrUnavailable))
	fmt.Println(client.Close(ctx))
	// Output:
	// busy: false
	// unavailable: true
	// <nil>
}
