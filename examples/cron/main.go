// Command cron has three pods start the same job at the same time, by their own clocks. One of them does it.
//
//	go run ./examples/cron
//
// It shows two things. The lock stays taken for three seconds after it was granted, although the job is done at
// once: a pod whose clock is behind finds it taken (latchkey.AtLeast). And a job whose lock is lost is told,
// and stops; its run counts as failed. Jobs of gocron get the same from the module latchkeycron, jobs
// of crontab from "latchkey cron".
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
	// least is longer than the clocks of the pods differ, and shorter than the time between two runs.
	least = 3 * time.Second
	// drift is by how much the clock of each pod is behind that of the one before.
	drift = 100 * time.Millisecond
)

func main() { fleet.Main(run) }

func run(ctx context.Context, f *fleet.Fleet) error {
	// A short lease has the loss told quickly here. In a program keep the default.
	pods, err := f.Pods(ctx, 3, latchkey.Options{Lease: 3 * time.Second})
	if err != nil {
		return err
	}
	quick := func(context.Context) error { return nil }
	if err := tick(ctx, 1, pods, quick); err != nil {
		return err
	}
	time.Sleep(least) // until the next tick: in a program minutes or hours

	// In the second run somebody forces the lock open while the job works.
	slow := func(ctx context.Context) error {
		if _, err := pods[2].ForceUnlock(ctx, name); err != nil {
			return err
		}
		<-ctx.Done() // every step of the work takes this context
		return context.Cause(ctx)
	}
	return tick(ctx, 2, pods[:1], slow)
}

// tick is the moment at which all pods start the job.
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
			lost++ // another pod may have begun it: raise an alarm, or have the job repeatable
		default:
			return err // the server could not be asked: nobody knows whether the job is done
		}
		time.Sleep(drift) // by which the clock of the next pod is behind
	}
	fmt.Printf("run %d: %d of %d pods did the job, %d left it to another, %d lost the lock meanwhile\n", n, done, len(pods), skipped, lost)
	return nil
}

// once does the job, unless another pod does it or has just done it.
func once(ctx context.Context, pod *latchkey.Client, job func(context.Context) error) (err error) {
	hold, err := pod.NewLock(name).TryLock(ctx, latchkey.AtLeast(least))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }() // ErrLost: the lock was lost while the job ran
	return job(hold.Context(ctx))
}
