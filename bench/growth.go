package main

import (
	"context"
	"fmt"
	"os"
)

// A Growth measures how long the server takes for the scripts of operations, beside more and more
// of what is there already.
type Growth struct {
	Name, Title string
	Beside      string // what there is more and more of
	Operations  []string
	// Run makes as many as Many says, and times each operation.
	Run func(e *env, s *stopwatch) error
}

// growthSizes are how many are there.
var growthSizes = []int{1, 10, 100, 1000, 10_000, 50_000}

// growthRounds is how often each operation is measured.
const growthRounds = 51

func growths() []Growth {
	return []Growth{
		queueGrowth(), fairGrowth(), holdsGrowth(), readersGrowth(), permitsGrowth(),
	}
}

// measureGrowth interleaves the repetitions, as measureWorkload does. It is the last thing that a
// server does: its log of slow commands stays on.
func (b *bench) measureGrowth(ctx context.Context, g Growth) {
	for repetition := range b.repetitions {
		for _, size := range growthSizes {
			s := sample{Workload: g.Name, Peer: latchkeyLock().Name(), Repetition: repetition, Size: size}
			s.result = b.measureSize(ctx, g, size)
			if ctx.Err() != nil {
				return
			}
			b.samples = append(b.samples, s)
			first := g.Operations[0]
			fmt.Fprintf(os.Stderr, "%-16s %6d %d %.0f µs %s %s\n", g.Name, size, repetition+1, s.Metrics[first], first, s.Error)
		}
	}
}

func (b *bench) measureSize(ctx context.Context, g Growth, size int) result {
	if err := b.server.reset(ctx); err != nil {
		return result{Error: err.Error()}
	}
	o := order{
		Peer: latchkeyLock().Name(), Workload: g.Name, Addr: b.server.addr, Server: b.server.addr,
		Lease: lease, Many: size,
	}
	return measure(ctx, o, o.limit())
}

// grow is what the child does.
func grow(e *env, g Growth) (Metrics, error) {
	s, err := newStopwatch(e)
	if err != nil {
		return nil, err
	}
	if err := g.Run(e, s); err != nil {
		return nil, err
	}
	return s.medians(), nil
}
