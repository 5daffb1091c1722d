package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// uncontended runs goroutines of one client that each use an object of their own: newUse returns a
// function that uses the object with a key once.
func uncontended(
	e *env, goroutines int, newUse func(c Client, key string) (func(ctx context.Context) error, error),
) (Metrics, error) {
	client, err := e.open()
	if err != nil {
		return nil, err
	}
	w := &window{env: e, limit: drainLimit}
	pairs := make([][]time.Duration, goroutines)
	for i := range pairs {
		use, err := newUse(client, fmt.Sprint("alone:", i))
		if err != nil {
			return nil, err
		}
		w.start(func(ctx context.Context) (err error) {
			pairs[i], err = useAgain(ctx, w, use)
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

// acquireAndRelease returns a function that acquires and releases a lock.
func acquireAndRelease(c Client, key string) (func(ctx context.Context) error, error) {
	return func(ctx context.Context) error {
		release, err := c.Lock(ctx, key)
		if err == nil {
			err = release(ctx)
		}
		return err
	}, nil
}

// useAgain uses an object until the window ends. It returns the time of each use that lies in the
// measured time.
func useAgain(ctx context.Context, w *window, use func(ctx context.Context) error) ([]time.Duration, error) {
	var times []time.Duration
	for !w.ended() {
		measured, start := w.measuring(), time.Now()
		if err := use(ctx); err != nil {
			return nil, err
		}
		if measured && w.measuring() {
			times = append(times, time.Since(start))
		}
	}
	return times, nil
}
