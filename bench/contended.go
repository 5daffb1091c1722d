package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// occupancy counts the holders of a lock.
type occupancy struct {
	capacity int64
	held     atomic.Int64
	overlaps atomic.Int64 // how often more than capacity was held
}

func (o *occupancy) enter(part int64) {
	if o.held.Add(part) > o.capacity {
		o.overlaps.Add(1)
	}
}

func (o *occupancy) leave(part int64) { o.held.Add(-part) }

// A race is one contended measurement.
type race struct {
	window
	kind      kind
	key       string
	clients   int64
	inside    occupancy
	last      atomic.Int64 // the goroutine that got the latest grant
	handovers atomic.Int64 // grants to another goroutine than the previous one
	changes   atomic.Int64 // grants to another client than the previous one
}

// A contender is a goroutine of a race.
type contender struct {
	number  int64
	client  Client
	waits   []time.Duration // the waits that ended in the measured time
	longest time.Duration   // of these waits, and of the wait that outlasted the measured time
}

// contended runs goroutines of several clients that repeatedly acquire and release one lock.
func contended(e *env, clients, each int, k kind, limit time.Duration) (Metrics, error) {
	opened, err := e.openMany(clients)
	if err != nil {
		return nil, err
	}
	r := &race{
		window: window{env: e, limit: limit}, kind: k, key: "contended", clients: int64(clients),
		inside: occupancy{capacity: k.capacity()},
	}
	if err := k.prepare(e.ctx, opened[0], r.key); err != nil {
		return nil, err
	}
	contenders := make([]*contender, clients*each)
	for i := range contenders {
		contenders[i] = &contender{number: int64(i), client: opened[i%clients]}
		r.start(func(ctx context.Context) error { return r.loop(ctx, contenders[i]) })
	}
	from, to, err := r.run()
	m := Metrics{}
	if err == nil {
		m = r.metrics(contenders, from, to)
	}
	m[overlapsMetric] = float64(r.inside.overlaps.Load())
	return m, err
}

func (r *race) loop(ctx context.Context, one *contender) error {
	for !r.ended() {
		start := time.Now()
		release, part, err := r.kind.acquire(ctx, one.client, r.key)
		if err != nil {
			return err
		}
		r.inside.enter(part)
		r.note(one, time.Since(start))
		r.inside.leave(part)
		if err := release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note counts a grant, and keeps its wait.
func (r *race) note(one *contender, wait time.Duration) {
	last := r.last.Swap(one.number)
	phase := r.phase.Load()
	if phase == measuring {
		one.waits = append(one.waits, wait)
		if last != one.number {
			r.handovers.Add(1)
		}
		if last%r.clients != one.number%r.clients {
			r.changes.Add(1)
		}
	}
	if phase != warming {
		one.longest = max(one.longest, wait)
	}
}

func (r *race) metrics(contenders []*contender, from, to counters) Metrics {
	var waits []time.Duration
	var longest time.Duration
	var shares []float64
	for _, one := range contenders {
		shares = append(shares, float64(len(one.waits)))
		waits = append(waits, one.waits...)
		longest = max(longest, one.longest)
	}
	slices.Sort(waits)
	m := cost(from, to, float64(len(waits)))
	m["grants/s"] = float64(len(waits)) / m["seconds"]
	m["handovers/s"] = float64(r.handovers.Load()) / m["seconds"]
	m["client changes/s"] = float64(r.changes.Load()) / m["seconds"]
	m["wait p50 ms"], m["wait p99 ms"] = millis(quantile(waits, .5)), millis(quantile(waits, .99))
	m["longest wait ms"] = millis(longest)
	m[fairnessMetric] = fairness(shares)
	return m
}
