// Command cron runs three pods that start the same job at the same time, each by its own clock. One
// of them does it.
//
//	go run ./examples/cron
//
// It shows two things. The lock stays taken for three seconds after it was granted, although the
// job is done at once, so a pod whose clock is behind finds it taken (latchkey.AtLeast). A job
// whose lock is lost learns of the loss and stops; its run counts as failed. For jobs of gocron,
// use the module latchkeycron; for jobs of crontab, use "latchkey cron".
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/examples/internal/fleet"
)

const (
	name = "cron:clean-up"
	// least is longer than the difference between the clocks of the pods, and shorter than the time
	// between two runs.
	least = 3 * time.Second
	// drift is how far the clock of each pod is behind that of the previous pod.
	drift = 100 * time.Millisecond
)

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	// With a short lease this example detects the loss quickly. In a real program keep the default.
	pods, err := f.Pods(ctx, 3, latchkey.Options{Lease: 3 * time.Second})
	if err != nil {
		return err
	}
	quick := func(context.Context) error { return nil }
	if err := tick(ctx, 1, pods, quick); err != nil {
		return err
	}
	time.Sleep(least) // until the next tick: minutes or hours in a real program

	// In the second run somebody forces the lock open while the job works.
	slow := func(ctx context.Context) error {
		if _, err := pods[2].ForceUnlock(ctx, name); err != nil {
			return err
		}
		<-ctx.Done() // pass this context to every step of the work
		return context.Cause(ctx)
	}
	return tick(ctx, 2, pods[:1], slow)
}

// tick starts the job in all pods.
func tick(ctx context.Context, n int, pods []*latchkey.Client, job func(context.Context) error) error {
	var done, skipped, lost int
	for _, pod := range pods {
		err := once(ctx, pod, job)
		switch {
		case err == nil:
			done++
		case errors.Is(err, latchkey.ErrNotAcquired):
			skipped++ // another pod does it, or has done it
		case errors.Is(err, latchkey.ErrLost):
			lost++ // another pod may have begun the job: raise an alarm, or make the job safe to repeat
		default:
			return err // the server did not answer: it is unknown whether the job is done
		}
		time.Sleep(drift) // the clock of the next pod is behind
	}
	fmt.Printf("run %d: %d of %d pods did the job, %d left it to another, %d lost the lock\n", n, done, len(pods), skipped, lost)
	return nil
}

// once does the job, unless another pod is doing it or has just done it.
func once(ctx context.Context, pod *latchkey.Client, job func(context.Context) error) (err error) {
	hold, err := pod.NewLock(name).TryLock(ctx, latchkey.AtLeast(least))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }() // ErrLost: the lock was lost while the job ran
	return job(hold.Context(ctx))
}
