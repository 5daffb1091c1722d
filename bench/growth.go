package main

import (
	"context"
	"fmt"
	"os"
)

// A Growth measures how long the scripts of operations take on the server while more and more
// items, such as waiters or holds, are already there.
type Growth struct {
	Name, Title string
	Beside      string // the items whose number grows
	Operations  []string
	// Run creates Many items, and times each operation.
	Run func(e *env, s *stopwatch) error
}

// growthSizes are the numbers of items.
var growthSizes = []int{1, 10, 100, 1000, 10_000, 50_000}

// growthRounds is how often each operation is measured.
const growthRounds = 51

func growths() []Growth {
	return []Growth{
		queueGrowth(), fairGrowth(), holdsGrowth(), readersGrowth(), permitsGrowth(),
	}
}

// measureGrowth measures all sizes once per repetition, so that a disturbance of the machine
// affects all sizes. It must come last on a server, because it leaves the slow log on.
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

// grow runs a growth in a child process.
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
