package main

import (
	"context"
	"runtime"
	"slices"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// A counting counts what operations of two clients cost.
type counting struct {
	ctx      context.Context
	monitor  *monitor
	trips    *trips
	one, two *latchkey.Client
}

// travel has what one operation sends over the network, and what its script calls.
type travel struct{ roundTrips, commands, calls int }

func newCounting(ctx context.Context, addr string) (*counting, error) {
	m, err := watch(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &counting{ctx: ctx, monitor: m, trips: &trips{}}
	for _, client := range []**latchkey.Client{&c.one, &c.two} {
		*client, err = latchkey.Open(ctx, rueidis.ClientOption{InitAddress: []string{addr}, DialCtxFn: c.trips.dial}, latchkey.Options{})
		if err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *counting) close() {
	c.monitor.close()
	for _, client := range []*latchkey.Client{c.one, c.two} {
		if client != nil {
			_ = client.Close(c.ctx) // releases the locks
		}
	}
}

// warmUp makes the server load the scripts, and the clients subscribe.
func (c *counting) warmUp(steps []step) error {
	for range 2 {
		for _, s := range steps {
			if err := s.do(); err != nil {
				return err
			}
			if _, _, err := c.monitor.quiet(); err != nil {
				return err
			}
		}
	}
	return nil
}

// countTravels returns the median over several rounds. For round trips it returns the minimum,
// because replies may arrive between commands that are sent together.
func (c *counting) countTravels(steps []step, read func() (commands, calls int, err error)) ([]travel, error) {
	all := make([][]travel, len(steps))
	for range costRounds {
		for i, s := range steps {
			one, err := c.countTravel(s, read)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], one)
		}
	}
	middle := make([]travel, len(steps))
	for i, some := range all {
		middle[i] = travel{
			roundTrips: slices.Min(each(some, func(t travel) int { return t.roundTrips })),
			commands:   middleOf(each(some, func(t travel) int { return t.commands })),
			calls:      middleOf(each(some, func(t travel) int { return t.calls })),
		}
	}
	return middle, nil
}

func (c *counting) countTravel(s step, read func() (commands, calls int, err error)) (travel, error) {
	c.trips.reset()
	if err := s.do(); err != nil {
		return travel{}, err
	}
	commands, calls, err := read()
	return travel{int(c.trips.n.Load()), commands, calls}, err
}

// countAllocations returns the median for each step.
func (c *counting) countAllocations(steps []step) ([]int, error) {
	all := make([][]int, len(steps))
	for range allocationRounds {
		for i, s := range steps {
			before := allocations()
			if err := s.do(); err != nil {
				return nil, err
			}
			all[i] = append(all[i], allocations()-before)
		}
	}
	return each(all, middleOf), nil
}

// allocations returns how many objects this process has ever allocated.
func allocations() int {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.Mallocs)
}

func each[A, B any](all []A, f func(A) B) []B {
	made := make([]B, len(all))
	for i, one := range all {
		made[i] = f(one)
	}
	return made
}

func middleOf(values []int) int { return slices.Sorted(slices.Values(values))[len(values)/2] }
