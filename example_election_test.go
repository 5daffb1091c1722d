package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Run makes one of several processes the leader. Leader tells any process who that is.
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
		stop()                                               // as the program does when it ends
		<-ctx.Done()                                         // ctx also ends when the leadership is lost
		return nil
	})
	leader, _ := scheduler.Leader(context.Background())
	fmt.Println(err, leader.IsZero())
	// Output:
	// 10.0.0.7:8080 leads in term 1
	// <nil> true
}

// Observe yields each new leader, and also reports when nobody leads.
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

// Campaign without Run: the program itself decides when to campaign and when to resign.
func ExampleLeadership() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	leadership, err := client.NewElection("scheduler").Campaign(ctx, "10.0.0.7:8080", latchkey.Wait(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	work := leadership.Context(ctx) // ends with ErrLost if the leadership is lost
	fmt.Println("term", leadership.Term(), work.Err())
	fmt.Println(leadership.Proclaim(ctx, "10.0.0.7:9090")) // from now on Leader returns this address
	fmt.Println(leadership.Resign(ctx))
	// Output:
	// term 1 <nil>
	// <nil>
	// <nil>
}

// Any client can query who leads.
func ExampleLeader() {
	ctx := context.Background()
	client, done := embedded()
	defer done()

	scheduler := client.NewElection("scheduler")
	leader, err := scheduler.Leader(ctx)
	fmt.Println("nobody:", leader.IsZero(), err)
	if _, err := scheduler.Campaign(ctx, "10.0.0.7:8080"); err != nil {
		log.Fatal(err)
	}
	leader, err = scheduler.Leader(ctx)
	fmt.Println(leader.Value, "in term", leader.Term, err)
	// Output:
	// nobody: true <nil>
	// 10.0.0.7:8080 in term 1 <nil>
}
