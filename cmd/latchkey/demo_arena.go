package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// thinking is how long a worker waits between its read and its write. Without a
	// lock, others change the value in that time.
	thinking = time.Millisecond
	// leftovers is the TTL of objects that a killed demo leaves behind.
	leftovers = time.Hour
	// sweepTimeout limits the removal of an object.
	sweepTimeout = 2 * time.Second
)

// arena is what the workers share: an unprotected counter in Redis, and a gauge
// that counts how many workers use the counter at once.
type arena struct {
	redis rueidis.Client
	key   string
	gauge gauge
}

func newArena(s *stage, name string) *arena {
	return &arena{redis: s.redis, key: s.prefix + name}
}

// increment is the work: read, think, write. It is correct only if no other worker
// does it at the same time.
func (a *arena) increment(ctx context.Context) error {
	a.gauge.enter()
	defer a.gauge.leave()
	value, err := a.read(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, thinking); err != nil {
		return err
	}
	return a.write(ctx, value+1)
}

func (a *arena) read(ctx context.Context) (int64, error) {
	value, err := a.redis.Do(ctx, a.redis.B().Get().Key(a.key).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return value, err
}

// write ignores the end of ctx: the server could execute an abandoned command
// after sweep.
func (a *arena) write(ctx context.Context, value int64) error {
	ctx = context.WithoutCancel(ctx)
	text := strconv.FormatInt(value, 10)
	return a.redis.Do(ctx, a.redis.B().Set().Key(a.key).Value(text).Ex(leftovers).Build()).Error()
}

// sweep removes the counter, even if the demo was interrupted.
func (a *arena) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTimeout)
	defer cancel()
	_ = a.redis.Do(ctx, a.redis.B().Del().Key(a.key).Build()).Error()
}

// pause waits for d. If ctx ends first, it returns the cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// gauge counts the workers that are inside. It is not in Redis, because it must not
// depend on what it checks.
type gauge struct {
	mu     sync.Mutex
	inside int
	most   int
	full   int // how many have to be inside before next gets the time
	next   chan<- time.Time
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
	g.most = max(g.most, g.inside)
	if g.next != nil && g.inside >= g.full {
		g.next <- time.Now()
		g.next = nil
	}
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

// leaveUntil is like leave. It also returns a channel that receives the time at
// which n workers are inside again.
func (g *gauge) leaveUntil(n int) <-chan time.Time {
	next := make(chan time.Time, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.full, g.next = n, next
	return next
}

func (g *gauge) now() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}

func (g *gauge) peak() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}
