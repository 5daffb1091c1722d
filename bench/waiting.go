package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// firstGrantLimit is how long the waiters may take to get a released lock.
const firstGrantLimit = 15 * time.Second

func waitingWorkload() Workload {
	return Workload{
		Name: "waiting", Title: "Waiting: goroutines of one client wait for a lock that another holds",
		Primary: "commands/s", Less: true, Once: true,
		Columns: []Column{
			{"waiters", 0}, {"commands/s", 1}, {"server CPU %", 1}, {"bytes/waiter", 0}, {"connections", 0},
			{"next grant ms", 2}, {overlapsMetric, 0},
		},
		Run: waiting,
	}
}

// A crowd has the goroutines that wait for one lock.
type crowd struct {
	failed  atomic.Pointer[error]
	inside  occupancy
	granted chan time.Time
}

// waiting counts the cost of waiters while they wait, and how soon one of them gets the lock after
// its release. It leaves the others waiting, because the process ends.
func waiting(e *env) (Metrics, error) {
	clients, err := e.openMany(2)
	if err != nil {
		return nil, err
	}
	holder, client := clients[0], clients[1]
	release, err := holder.Lock(e.ctx, "waiting")
	if err != nil {
		return nil, err
	}
	c := &crowd{inside: occupancy{capacity: 1}, granted: make(chan time.Time, e.Many)}
	c.inside.enter(1)
	before := memoryNow()
	for range e.Many {
		go c.wait(e.ctx, client)
	}
	m, err := c.idle(e, before)
	if err != nil {
		return nil, err
	}
	c.inside.leave(1)
	start := time.Now()
	if err := release(e.ctx); err != nil {
		return nil, err
	}
	select {
	case at := <-c.granted:
		m["next grant ms"] = millis(at.Sub(start))
	case <-time.After(firstGrantLimit):
		return nil, errors.New("nobody got the released lock within " + firstGrantLimit.String())
	}
	m[overlapsMetric] = float64(c.inside.overlaps.Load())
	return m, nil
}

func (c *crowd) wait(ctx context.Context, l Locker) {
	if _, err := l.Lock(ctx, "waiting"); err != nil {
		c.failed.CompareAndSwap(nil, &err)
		return
	}
	c.inside.enter(1)
	c.granted <- time.Now() // this goroutine keeps the lock
}

// idle measures while all goroutines wait.
func (c *crowd) idle(e *env, before memory) (Metrics, error) {
	time.Sleep(e.settle())
	after := memoryNow()
	from, err := e.count()
	if err != nil {
		return nil, err
	}
	time.Sleep(e.settle())
	to, err := e.count()
	if err != nil {
		return nil, err
	}
	if failed := c.failed.Load(); failed != nil {
		return nil, *failed
	}
	m := cost(from, to, 0)
	m["waiters"] = float64(e.Many)
	m["bytes/waiter"] = max(0, after.bytes-before.bytes) / float64(e.Many)
	m["connections"] = to.connections - 1 // without that of this program
	return m, nil
}

// settle returns how long a crowd gets to become idle. Waiters that poll do so in that time.
func (e *env) settle() time.Duration { return max(4*e.Time, time.Second) }
