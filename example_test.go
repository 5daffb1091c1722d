package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// embedded starts a server in place of Redis, so that the examples run anywhere. A
// program calls latchkey.Connect(ctx, "redis://localhost:6379", latchkey.Options{}) instead.
func embedded() (*latchkey.Client, func()) {
	server, err := latchkeytest.Start()
	if err != nil {
		log.Fatal(err)
	}
	return server.Client(), server.Close
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
	err := orders.Do(ctx, charge, latchkey.Wait(2*time.Second))
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

// A handler answers 409 if somebody else has the lock, and 503 if the server of the locks
// cannot be asked.
func ExampleLock_Do_http() {
	server, err := latchkeytest.Start()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	client, err := latchkey.Connect(ctx, server.URL(), latchkey.Options{RetryBudget: 100 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close(ctx) }()
	pay := func(w http.ResponseWriter, r *http.Request) {
		order := client.NewLock("order:" + r.PathValue("id"))
		err := order.Do(r.Context(), func(context.Context) error {
			fmt.Fprintln(w, "paid")
			return nil
		}, latchkey.Wait(100*time.Millisecond))
		switch {
		case err == nil:
		case errors.Is(err, latchkey.ErrNotAcquired):
			http.Error(w, "somebody else pays this order", http.StatusConflict)
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
	other, err := server.Client().NewLock("order:42").TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("busy:", post())
	fmt.Println("given back:", other.Unlock(ctx) == nil)
	server.Close()
	fmt.Println("dead:", post())
	// Output:
	// free: 200
	// busy: 409
	// given back: true
	// dead: 503
}

// Only one process does the work; the others do not wait. The error of Unlock is kept: it
// matches ErrLost if the lock was lost meanwhile.
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

// A job that each instance of a service starts at the same time, by its own clock, is done once. The
// lock stays taken for a minute, although the job is done at once: an instance whose clock is behind
// finds it taken.
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

// A store that remembers the largest token refuses a holder that lost the lock and has not
// noticed yet.
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
	slow, err := account.Lock(ctx, latchkey.Lease(10*time.Millisecond))
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

// Inside Do the hold is at hand, and with it the fencing token.
func ExampleHoldFrom() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	save := func(_ context.Context, token int64) error {
		fmt.Println("saving with token", token)
		return nil
	}
	err := client.NewFencedLock("account:8").Do(ctx, func(ctx context.Context) error {
		return save(ctx, latchkey.HoldFrom(ctx).Token())
	})
	fmt.Println(err)
	// Output:
	// saving with token 1
	// <nil>
}

// Code that is called under a lock acquires the same lock again.
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

	brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	fmt.Println("beside it:", errors.Is(reserve(brief), latchkey.ErrNotAcquired))
	fmt.Println("released:", hold.Unlock(ctx))
	// Output:
	// under the hold: <nil>
	// beside it: true
	// released: <nil>
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
			time.Sleep(time.Millisecond)
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

// A writer goes on reading the data that it has written, and nobody writes in between.
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
			err := pool.Do(ctx, func(context.Context) error { // its context ends if the permit is lost
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				jobs.Add(1)
				inside.Add(-1)
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
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

// One process acquires a permit, and another, which has its id, releases it.
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

// One of several processes leads, and everybody can find out which.
func ExampleElection_Run() {
	ctx, stop := context.WithCancel(context.Background())
	client, done := embedded()
	defer done()

	scheduler := client.NewElection("scheduler")
	err := scheduler.Run(ctx, "10.0.0.7:8080", func(ctx context.Context, l *latchkey.Leadership) error {
		leader, err := scheduler.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Println(leader.Value, "leads in term", l.Term()) // send the term with every write
		stop()                                               // as at the end of the program
		<-ctx.Done()                                         // which also ends when the leadership is lost
		return nil
	})
	leader, _ := scheduler.Leader(context.Background())
	fmt.Println(err, leader.IsZero())
	// Output:
	// 10.0.0.7:8080 leads in term 1
	// <nil> true
}

// An observer is told of each leader, and when nobody leads.
func ExampleElection_Observe() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	scheduler := client.NewElection("scheduler")
	var leadership *latchkey.Leadership
	for leader, err := range scheduler.Observe(ctx) {
		switch {
		case errors.Is(err, latchkey.ErrUnavailable):
			fmt.Println("nobody knows who leads") // Observe goes on
		case err != nil:
			fmt.Println("error:", err)
		case leader.IsZero() && leadership == nil:
			fmt.Println("nobody leads")
			leadership, err = scheduler.Campaign(ctx, "10.0.0.7:8080")
			if err != nil {
				fmt.Println("error:", err)
			}
		case leader.IsZero():
			fmt.Println("nobody leads again")
			return
		default:
			fmt.Println(leader.Value, "leads")
			_ = leadership.Resign(ctx)
		}
	}
	// Output:
	// nobody leads
	// 10.0.0.7:8080 leads
	// nobody leads again
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

// What is locked under a prefix, and by how many it is wanted.
func ExampleClient_Objects() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	hold, err := client.NewLock("orders:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = hold.Unlock(ctx) }()
	for o, err := range client.Objects(ctx, latchkey.QuotePattern("orders:")+"*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(o.Name, o.Kind, o.Holders[0].Owner == hold.Owner(), o.Waiters())
	}
	// Output: orders:42 lock true 0
}

// Who holds a lock, and what for.
func ExampleNote() {
	ctx := context.Background()
	server, err := latchkeytest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := server.Client(latchkey.Options{Label: "payments-7"})

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

// A program starts although its server is down: busy and unreachable are told apart.
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
