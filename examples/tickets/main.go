// Command tickets sells three tickets to the first customers, whichever pod they are at.
//
//	go run ./examples/tickets
//
// The desk is a fair lock: it serves customers at three pods in the order of their arrival. One
// customer stops waiting and leaves the queue, which costs the others nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

const name = "tickets:desk"

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	pods, err := f.Pods(ctx, 3, latchkey.Options{})
	if err != nil {
		return err
	}
	desk := pods[0].NewFairLock(name)
	hold, err := desk.Lock(ctx) // the desk is closed, so a queue forms
	if err != nil {
		return err
	}

	const tickets = 3
	var sold int // guarded by the desk; in a real program a row of a database
	serve := func(customer string) func(context.Context) error {
		return func(ctx context.Context) error {
			if ctx.Err() != nil { // the lock is lost: another customer may be at the desk
				return context.Cause(ctx)
			}
			if sold == tickets {
				fmt.Println(customer, "gets no ticket")
				return nil
			}
			sold++
			fmt.Println(customer, "gets ticket", sold)
			return nil
		}
	}
	var line sync.WaitGroup
	errs := make(chan error, 5)
	for i, customer := range []string{"dan", "ada", "cleo", "ben"} {
		place := pods[i%len(pods)].NewFairLock(name)
		line.Go(func() { errs <- place.Do(ctx, serve(customer)) })
		if err := fleet.InLine(ctx, desk, i+1); err != nil { // the next customer must come later
			return err
		}
		fmt.Printf("%s arrives as number %d\n", customer, i+1)
	}
	err = pods[0].NewFairLock(name).Do(ctx, serve("eve"), latchkey.Wait(100*time.Millisecond))
	fmt.Println("eve has left the queue:", errors.Is(err, latchkey.ErrNotAcquired))

	fmt.Println("the desk opens")
	if err := hold.Unlock(ctx); err != nil {
		return err
	}
	line.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
