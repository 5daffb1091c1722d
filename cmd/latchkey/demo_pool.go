package main

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// playPool shows a semaphore that limits how many workers work at once. It also
// shows that the permit of a worker that dies becomes free again.
func playPool(ctx context.Context, s *stage) (*proof, error) {
	permits, job := (s.workers+1)/2, s.duration/50
	s.explain(
		fmt.Sprintf("%d workers do jobs of %v each.", s.workers, job),
		fmt.Sprintf("A semaphore has %d permits, so no more than that may work at once.", permits),
		fmt.Sprintf("Meanwhile, worker %d, a separate process, is killed while it holds a permit.", s.workers+1))
	client, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer closeClient(client)
	pool := client.NewPermitSemaphore(s.prefix + "pool")
	defer remove(pool.Delete)
	if _, err := pool.TrySetPermits(context.WithoutCancel(ctx), permits, latchkey.TTL(leftovers)); err != nil {
		return nil, libraryError(err)
	}

	prize := aPermit(pool.Name(), permits, s.duration/10)
	g := &gauge{}
	crew, err := newCrew(ctx, s, g, func(ctx context.Context) error { return g.linger(ctx, job) }, prize.door)
	if err != nil {
		return nil, err
	}
	defer crew.dismiss()
	death := newAccident(s, prize)
	if err := death.watch(ctx, crew); err != nil {
		return nil, err
	}
	return provePool(crew, death), nil
}

// linger is a job that only stays inside for a while.
func (g *gauge) linger(ctx context.Context, d time.Duration) error {
	g.enter()
	defer g.leave()
	return pause(ctx, d)
}

// provePool compares the count of the gauge with the permits of the semaphore. If
// the permits were never all in use, nothing is proved.
func provePool(c *crew, death *accident) *proof {
	jobs, most, permits := c.turns(), c.gauge.peak(), death.prize.room
	return &proof{
		holds: jobs > 0 && most == permits && len(c.workers) > permits && death.back,
		text: fmt.Sprintf("%d jobs with %d permits, at most %d inside, %s",
			jobs, permits, most, death.outcome()),
	}
}
