// Command leader runs three pods that elect a leader, and another one when the leader is gone.
//
//	go run ./examples/leader
//
// latchkey.Election.Run campaigns, calls a function while the pod leads, and campaigns again after
// a loss. The second leader is deposed by force: its context ends with ErrLost, and it stops. Each
// term has a larger number, so that a storage can refuse a late write of a former leader.
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

const name = "leader:scheduler"

// reign is the time of a leader.
type reign struct {
	address string
	term    int64
	ended   <-chan error // why it ended
}

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) (err error) {
	// With a short lease this example detects the loss quickly. In a real program keep the default.
	pods, err := f.Pods(ctx, 3, latchkey.Options{Lease: 3 * time.Second})
	if err != nil {
		return err
	}
	reigns := make(chan reign)
	stops := map[string]context.CancelFunc{}
	results := make(chan error, len(pods))
	var all sync.WaitGroup
	for i, pod := range pods {
		address := fmt.Sprintf("10.0.0.%d:8080", i+1)
		own, stop := context.WithCancel(ctx)
		stops[address] = stop
		all.Go(func() { results <- candidate(own, pod, address, reigns) })
	}
	defer func() {
		for _, stop := range stops {
			stop() // like SIGTERM
		}
		all.Wait()
		close(results)
		for result := range results {
			if !errors.Is(result, context.Canceled) { // that pod was stopped while it campaigned
				err = errors.Join(err, result)
			}
		}
	}()

	first := <-reigns
	stops[first.address]() // the pod shuts down: it resigns, and the next pod leads at once
	fmt.Println("the first leader resigns:", errors.Is(<-first.ended, context.Canceled))

	second := <-reigns
	leader, err := pods[0].NewElection(name).Leader(ctx) // every client can find the leader
	if err != nil {
		return err
	}
	fmt.Println("everybody finds the second leader:", leader.Value == second.address && leader.Term == second.term)
	if _, err := pods[0].ForceUnlock(ctx, name); err != nil {
		return err
	}
	fmt.Println("it is deposed, and stops:", errors.Is(<-second.ended, latchkey.ErrLost))

	third := <-reigns
	fmt.Println("the terms increase:", first.term < second.term && second.term < third.term)
	return nil
}

// candidate leads whenever it is elected, until ctx ends.
func candidate(ctx context.Context, pod *latchkey.Client, address string, reigns chan<- reign) error {
	lead := func(ctx context.Context, l *latchkey.Leadership) error {
		ended := make(chan error, 1)
		select {
		case reigns <- reign{address, l.Term(), ended}:
		case <-ctx.Done():
		}
		<-ctx.Done() // the work of the leader: pass ctx to every step, and l.Term() to every write
		ended <- context.Cause(ctx)
		return nil
	}
	return pod.NewElection(name).Run(ctx, address, lead)
}
