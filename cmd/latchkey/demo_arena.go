package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// thinking is how long a worker keeps the value that it read before it writes
	// the next one: room for others to do harm in.
	thinking = time.Millisecond
	// leftovers is when the server forgets a counter that a killed demo left behind.
	leftovers = time.Hour
	// sweepTimeout bounds the removal of the counter.
	sweepTimeout = 2 * time.Second
)

// arena is where workers meet: a counter in Redis that nothing protects, and a
// gauge that sees how many are at it.
type arena struct {
	redis rueidis.Client
	key   string
	gauge gauge
}

func newArena(s *stage, name string) *arena {
	return &arena{redis: s.redis, key: s.prefix + name}
}

// increment is the work: read, think, write. It is right only if nobody else
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

// write ends what it began also when ctx ends: a command that is given up could be
// executed after sweep.
func (a *arena) write(ctx context.Context, value int64) error {
	ctx = context.WithoutCancel(ctx)
	text := strconv.FormatInt(value, 10)
	return a.redis.Do(ctx, a.redis.B().Set().Key(a.key).Value(text).Ex(leftovers).Build()).Error()
}

// sweep removes the counter, also when the demo was interrupted.
func (a *arena) sweep() {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTimeout)
	defer cancel()
	_ = a.redis.Do(ctx, a.redis.B().Del().Key(a.key).Build()).Error()
}

// pause waits for d or for the end of ctx, and then returns the reason of that.
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

// gauge counts who is inside. It is not in Redis: it must not depend on what it
// is to judge.
type gauge struct {
	mu     sync.Mutex
	inside int
	most   int
	full   int // how many are to be inside until next is told
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

// leaveUntil is leave, and returns a channel that gets the moment at which
// somebody enters as the n-th of those that are then inside.
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
