package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// uncontended runs goroutines of one client that each acquire and release a lock of their own.
func uncontended(e *env, goroutines int) (Metrics, error) {
	client, err := e.open()
	if err != nil {
		return nil, err
	}
	w := &window{env: e, limit: drainLimit}
	pairs := make([][]time.Duration, goroutines)
	for i := range pairs {
		key := fmt.Sprint("alone:", i)
		w.start(func(ctx context.Context) (err error) {
			pairs[i], err = acquireAndRelease(ctx, w, client, key)
			return err
		})
	}
	from, to, err := w.run()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(pairs...)
	slices.Sort(all)
	m := cost(from, to, float64(len(all)))
	m["grants/s"] = float64(len(all)) / m["seconds"]
	m["p50 µs"], m["p99 µs"] = micros(quantile(all, .5)), micros(quantile(all, .99))
	return m, nil
}

// acquireAndRelease acquires and releases the lock until the window ends. It returns the time of
// each pair that lies in the measured time.
func acquireAndRelease(ctx context.Context, w *window, l Locker, key string) ([]time.Duration, error) {
	var pairs []time.Duration
	for !w.ended() {
		measured, start := w.measuring(), time.Now()
		release, err := l.Lock(ctx, key)
		if err == nil {
			err = release(ctx)
		}
		if err != nil {
			return nil, err
		}
		if measured && w.measuring() {
			pairs = append(pairs, time.Since(start))
		}
	}
	return pairs, nil
}
