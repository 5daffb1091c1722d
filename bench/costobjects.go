package main

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// limiterSteps use a rate limiter whose burst is used up after the first step.
func limiterSteps(c *counting) ([]step, error) {
	rate := latchkey.Rate{N: 1, Per: time.Hour}
	round := 0
	var l *latchkey.RateLimiter
	var r *latchkey.Reservation
	return []step{
		{"", func() error {
			round++
			l = c.one.NewRateLimiter(fmt.Sprint("limiter:", round), rate)
			return nil
		}},
		{"Allow", func() error { _, err := l.Allow(c.ctx); return err }},
		{"Allow, refused", func() error { _, err := l.Allow(c.ctx); return err }},
		{"Reserve", func() (err error) { r, err = l.Reserve(c.ctx); return err }},
		{"Cancel", func() error { return r.Cancel(c.ctx) }},
		{"SetRate", func() error { return l.SetRate(c.ctx, rate) }},
		{"Inspect", func() error { _, err := l.Inspect(c.ctx); return err }},
	}, nil
}

// barrierSteps use a barrier that is complete at once.
func barrierSteps(c *counting) ([]step, error) {
	b := c.one.NewBarrier("barrier1", 1)
	return []step{
		{"Await", func() error { _, err := b.Await(c.ctx); return err }},
		{"State", func() error { _, err := b.State(c.ctx); return err }},
		{"Do", func() error { return b.Do(c.ctx, func(context.Context) error { return nil }) }},
	}, nil
}

// barrierOfTwoSteps use a barrier with one party of each client.
func barrierOfTwoSteps(c *counting) ([]step, error) {
	first, last := c.one.NewBarrier("barrier2", 2), c.two.NewBarrier("barrier2", 2)
	waiting := make(chan error, 1)
	return []step{
		{"Await, and waiting", func() error {
			go func() { _, err := first.Await(c.ctx); waiting <- err }()
			return nil
		}},
		{"Await, last, and the first continues", func() error {
			if _, err := last.Await(c.ctx); err != nil {
				return err
			}
			return <-waiting
		}},
	}, nil
}

// electionSteps use a single candidate.
func electionSteps(c *counting) ([]step, error) {
	e, other := c.one.NewElection("election1"), c.two.NewElection("election1")
	var l *latchkey.Leadership
	return []step{
		{"Campaign", func() (err error) { l, err = e.Campaign(c.ctx, "host:8080"); return err }},
		{"TryCampaign, refused", func() error { _, err := other.TryCampaign(c.ctx, "other:8080"); return refused(nil, err) }},
		{"Leader", func() error { _, err := e.Leader(c.ctx); return err }},
		{"Proclaim", func() error { return l.Proclaim(c.ctx, "host:8081") }},
		{"Resign", func() error { return l.Resign(c.ctx) }},
	}, nil
}

// candidateSteps use a leader, and a candidate of another client. The cost of the resignation that
// elects the candidate is not counted: the commands of the two clients overlap.
func candidateSteps(c *counting) ([]step, error) {
	e, other := c.one.NewElection("election2"), c.two.NewElection("election2")
	var l *latchkey.Leadership
	type outcome struct {
		l   *latchkey.Leadership
		err error
	}
	next := make(chan outcome, 1)
	return []step{
		{"", func() (err error) { l, err = e.Campaign(c.ctx, "host:8080"); return err }},
		{"Campaign, refused and waiting", func() error {
			go func() { l, err := other.Campaign(c.ctx, "other:8080"); next <- outcome{l, err} }()
			return nil
		}},
		{"", func() error {
			if err := l.Resign(c.ctx); err != nil {
				return err
			}
			got := <-next
			l = got.l
			return got.err
		}},
		{"", func() error { return l.Resign(c.ctx) }},
	}, nil
}

// objectSteps query a hundred held locks.
func objectSteps(c *counting) ([]step, error) {
	for i := range 100 {
		if _, err := c.two.NewLock(fmt.Sprint("object:", i)).Lock(c.ctx, latchkey.Lease(time.Hour)); err != nil {
			return nil, err
		}
	}
	return []step{
		{"Inspect", func() error { _, err := c.one.Inspect(c.ctx, "object:1"); return err }},
		{"Objects, 100 locks", func() error {
			for _, err := range c.one.Objects(c.ctx, "object:*") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	}, nil
}
