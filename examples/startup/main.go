// Command startup makes workers wait until the services that they need are up.
//
//	go run ./examples/startup
//
// It uses one latchkey.CountDownLatch per roll-out, with one count for each service. A service that
// restarts in between counts once. The second latch stays closed, because one of its services does
// not start.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	// Each roll-out has a latch of its own, because an open latch stays open.
	rollout := strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := open(ctx, f, "ready:"+rollout); err != nil {
		return err
	}
	return closed(ctx, f, "ready:"+rollout+":without-cache")
}

// open lets three workers in after two services have started.
func open(ctx context.Context, f *fleet.Fleet, name string) error {
	pods, err := f.Pods(ctx, 4, latchkey.Options{})
	if err != nil {
		return err
	}
	operator, workers := pods[0], pods[1:]
	if err := set(ctx, operator, name); err != nil {
		return err
	}
	passed := make(chan error, len(workers))
	var all sync.WaitGroup
	for _, worker := range workers {
		all.Go(func() { passed <- worker.NewCountDownLatch(name).Await(ctx, latchkey.Wait(10*time.Second)) })
	}
	latch := operator.NewCountDownLatch(name)
	for _, up := range []struct{ service, text string }{
		{"cache", "cache is up"}, {"cache", "cache is up again after a restart, which counts once"}, {"database", "database is up"},
	} {
		left, err := latch.CountDownAs(ctx, up.service)
		if err != nil {
			return err
		}
		fmt.Printf("%s, %d to go\n", up.text, left)
	}
	all.Wait()
	close(passed)
	for err := range passed {
		if err != nil {
			return err
		}
	}
	fmt.Println("the latch let", len(workers), "workers in")
	return nil
}

// closed shows a latch at which a worker gives up.
func closed(ctx context.Context, f *fleet.Fleet, name string) error {
	pod, err := f.Pod(ctx, latchkey.Options{})
	if err != nil {
		return err
	}
	if err := set(ctx, pod, name); err != nil {
		return err
	}
	latch := pod.NewCountDownLatch(name)
	if _, err := latch.CountDownAs(ctx, "database"); err != nil {
		return err
	}
	err = latch.Await(ctx, latchkey.Wait(200*time.Millisecond))
	fmt.Println("without a cache, the latch stays closed:", errors.Is(err, latchkey.ErrNotAcquired))
	_, err = latch.Delete(ctx) // a waiter would get ErrGone
	return err
}

// set closes a latch for two services. The TTL removes the latch if the roll-out is abandoned.
func set(ctx context.Context, client *latchkey.Client, name string) error {
	_, err := client.NewCountDownLatch(name).TrySetCount(ctx, 2, latchkey.TTL(time.Hour))
	return err
}
