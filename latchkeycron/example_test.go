package latchkeycron_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeycron"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Three processes start the same job at the same time. One of them runs it.
func ExampleNewLocker() {
	server, err := latchkeytest.Start() // in a program: latchkey.Connect
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	var done sync.WaitGroup
	left := make(chan error, 3)
	for range 3 {
		locker := latchkeycron.NewLocker(server.Client(), latchkeycron.WithAtLeast(time.Minute))
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = scheduler.Shutdown() }()

		done.Add(1)
		_, err = scheduler.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), // or gocron.CronJob("0 3 * * *", false)
			gocron.NewTask(func(ctx context.Context) error {
				defer done.Done()
				ctx = locker.Hold("nightly").Context(ctx) // ends when the lock is lost
				fmt.Println("report:", ctx.Err())
				return nil
			}),
			gocron.WithName("nightly"),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
				defer done.Done()
				left <- err
			})),
		)
		if err != nil {
			log.Fatal(err)
		}
		scheduler.Start()
	}
	done.Wait()
	for range 2 {
		fmt.Println("left to another process:", errors.Is(<-left, latchkey.ErrNotAcquired))
	}
	// Output:
	// report: <nil>
	// left to another process: true
	// left to another process: true
}

// One of two processes runs all jobs. When it ends, the other one takes over.
func ExampleNewElector() {
	server, err := latchkeytest.Start() // in a program: latchkey.Connect
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	ran := make(chan string)
	process := func(name string) (stop func()) {
		elector := latchkeycron.NewElector(server.Client(), "scheduler", latchkeycron.WithValue(name))
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
		if err != nil {
			log.Fatal(err)
		}
		ending := make(chan struct{})
		_, err = scheduler.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() {
			select {
			case ran <- name:
			case <-ending:
			}
		}))
		if err != nil {
			log.Fatal(err)
		}
		scheduler.Start()
		return func() {
			close(ending)
			_ = scheduler.Shutdown()                // first, so that no run overlaps those of the next leader
			_ = elector.Close(context.Background()) // the next one leads at once
		}
	}
	stopFirst := process("first")
	fmt.Println(<-ran, "leads")
	stopSecond := process("second")
	fmt.Println(<-ran, "leads")
	stopFirst()
	fmt.Println(<-ran, "leads")
	stopSecond()
	// Output:
	// first leads
	// first leads
	// second leads
}
