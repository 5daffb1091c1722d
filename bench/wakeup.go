package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// wakeupPairs is the number of locks that have a holder of one client and a waiter of another.
const wakeupPairs = 8

func wakeupWorkload() Workload {
	return Workload{
		Name: "wakeup", Title: "Wake-up: from the call of Release by one client to the grant to another",
		Primary: "p50 µs", Less: true,
		Columns: []Column{{"p50 µs", 0}, {"p99 µs", 0}, {"samples", 0}},
		Run:     wakeup,
	}
}

// wakeup makes one client hold locks for a random time of 5 to 105 ms, while goroutines of another
// client wait. The time is random so that it suits no delay between tries.
func wakeup(e *env) (Metrics, error) {
	clients, err := e.openMany(2)
	if err != nil {
		return nil, err
	}
	e.Time *= 4 // most of it is spent holding
	w := &window{env: e, limit: drainLimit}
	var mu sync.Mutex
	var times []time.Duration
	for i := range wakeupPairs {
		key := fmt.Sprint("wakeup:", i)
		w.start(func(ctx context.Context) error {
			for !w.ended() {
				took, err := passOn(ctx, clients[0], clients[1], key)
				if err != nil {
					return err
				}
				if w.measuring() {
					mu.Lock()
					times = append(times, took)
					mu.Unlock()
				}
			}
			return nil
		})
	}
	if _, _, err := w.run(); err != nil {
		return nil, err
	}
	slices.Sort(times)
	return Metrics{
		"p50 µs": micros(quantile(times, .5)), "p99 µs": micros(quantile(times, .99)), "samples": float64(len(times)),
	}, nil
}

// passOn returns the time from the release by one client to the grant to another one.
func passOn(ctx context.Context, from, to Locker, key string) (time.Duration, error) {
	release, err := from.Lock(ctx, key)
	if err != nil {
		return 0, err
	}
	granted, failed := make(chan time.Time, 1), make(chan error, 1)
	go func() {
		next, err := to.Lock(ctx, key)
		granted <- time.Now()
		if err == nil {
			err = next(ctx)
		}
		failed <- err
	}()
	time.Sleep(5*time.Millisecond + rand.N(100*time.Millisecond))
	start := time.Now()
	if err := release(ctx); err != nil {
		return 0, err
	}
	took := (<-granted).Sub(start)
	return took, <-failed
}
