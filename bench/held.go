package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// heldWorkers is how many goroutines acquire and release the locks.
const heldWorkers = 64

func heldWorkload() Workload {
	return Workload{
		Name: "held", Title: "Held: one client holds many locks, which are renewed",
		Primary: "commands/s", Less: true, Once: true, ShortLease: true,
		Columns: []Column{
			{"locks", 0}, {"commands/s", 1}, {"server CPU %", 1}, {"bytes/lock", 0}, {"goroutines/lock", 2}, {"lost", 0},
		},
		Run: held,
	}
}

// held counts the cost of renewals for one lease, which is a whole number of renewal periods.
func held(e *env) (Metrics, error) {
	client, err := e.open()
	if err != nil {
		return nil, err
	}
	renewer, ok := client.(AutoRenewer)
	if !ok {
		return nil, errMissing
	}
	if release, err := renewer.LockRenewed(e.ctx, "first"); err != nil {
		return nil, err
	} else if err := release(e.ctx); err != nil {
		return nil, err
	}
	before := memoryNow()
	releases, err := acquireMany(e, renewer)
	if err != nil {
		return nil, err
	}
	after := memoryNow()
	m, err := renewals(e)
	if err != nil {
		return nil, err
	}
	n := float64(e.Many)
	m["locks"] = n
	m["bytes/lock"] = max(0, after.bytes-before.bytes) / n
	m["goroutines/lock"] = max(0, after.goroutines-before.goroutines) / n
	m["lost"] = float64(releaseMany(e.ctx, releases))
	return m, nil
}

func renewals(e *env) (Metrics, error) {
	from, err := e.count()
	if err != nil {
		return nil, err
	}
	time.Sleep(e.Lease)
	to, err := e.count()
	return cost(from, to, 0), err
}

// acquireMany acquires many locks. It returns their releases, in one part per goroutine.
func acquireMany(e *env, renewer AutoRenewer) ([][]Release, error) {
	parts, failed := make([][]Release, heldWorkers), make([]error, heldWorkers)
	var group sync.WaitGroup
	for worker := range heldWorkers {
		group.Go(func() {
			for i := worker; i < e.Many; i += heldWorkers {
				release, err := renewer.LockRenewed(e.ctx, fmt.Sprint("held:", i))
				if err != nil {
					failed[worker] = err
					return
				}
				parts[worker] = append(parts[worker], release)
			}
		})
	}
	group.Wait()
	return parts, errors.Join(failed...)
}

// releaseMany returns how many releases failed.
func releaseMany(ctx context.Context, parts [][]Release) int64 {
	var lost atomic.Int64
	var group sync.WaitGroup
	for _, part := range parts {
		group.Go(func() {
			for _, release := range part {
				if release(ctx) != nil {
					lost.Add(1)
				}
			}
		})
	}
	group.Wait()
	return lost.Load()
}

// A memory is the memory and the goroutines that this process uses.
type memory struct {
	bytes      float64 // of the heap and of stacks
	goroutines float64
}

func memoryNow() memory {
	runtime.GC()
	runtime.GC() // frees what finalizers have released
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return memory{float64(s.HeapAlloc + s.StackInuse), float64(runtime.NumGoroutine())}
}
