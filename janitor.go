package latchkey

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	firstTidy = 20 * time.Millisecond
	longTidy  = 5 * time.Second
)

// janitor undoes what nobody knows the outcome of: an acquisition that was sent
// and not answered, a release that could not be delivered, a renewal that may have
// gone out for a hold that is lost. It sets the server's state to that of the
// client, at once and again until the lease which may have been taken is over, so
// that a command which is executed late is undone too. It has one goroutine, and
// that only while there is something to do.
type janitor struct {
	client *Client
	kick   chan struct{}
	closed chan struct{}
	tasks  sync.WaitGroup

	mu     sync.Mutex
	active bool
	ghosts map[unsettled]*ghost
}

// unsettled is what the server may know something else about than we do.
type unsettled interface {
	// seat is the turn under which it is settled.
	seat() *turn
	// settleUp sets the server right, and reports whether it has answered for good.
	settleUp(ctx context.Context, stop <-chan struct{}) bool
}

// ghost is when something is settled next, and until when.
type ghost struct {
	next, until time.Duration // on the monotonic clock
	span        time.Duration // the lease in question
	pause       time.Duration
	once        bool // nothing can be executed late: one answer is enough
}

func newJanitor(c *Client) *janitor {
	return &janitor{
		client: c,
		kick:   make(chan struct{}, 1),
		closed: make(chan struct{}),
		ghosts: map[unsettled]*ghost{},
	}
}

// add has something settled after a delay and then repeatedly for a time.
func (j *janitor) add(t unsettled, delay, span time.Duration) { j.haunt(t, delay, span, false) }

// once has something settled until the server answers, for that time at most.
func (j *janitor) once(t unsettled, span time.Duration) { j.haunt(t, 0, span, true) }

// haunt has something settled after a delay, once or repeatedly.
func (j *janitor) haunt(t unsettled, delay, span time.Duration, once bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.closed:
		return
	default:
	}
	now := j.client.clock().mono
	g := j.ghosts[t]
	if g == nil {
		g = &ghost{next: now + delay, once: once}
		j.ghosts[t] = g
	}
	g.once = g.once && once
	if span >= permanentLease {
		g.once, span = true, opMemory // a mark stops what is executed late
	}
	g.pause = firstTidy
	g.next = min(g.next, now+delay)
	g.span = max(g.span, span)
	g.until = max(g.until, now+delay+span+driftMargin(span))
	if !j.active {
		j.active = true
		j.tasks.Go(j.run)
	}
	nudge(j.kick)
}

// run settles what is due until nothing is left.
func (j *janitor) run() {
	for {
		due, wait, idle := j.next()
		if idle {
			return
		}
		j.tidy(due)
		if len(due) > 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-j.kick:
		case <-j.closed:
		}
		timer.Stop()
	}
}

// next returns what is due, else how long nothing will be. Without any ghosts, or
// after close, the goroutine is to end.
func (j *janitor) next() (due []unsettled, wait time.Duration, idle bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.client.clock().mono
	wait = longTidy
	for t, g := range j.ghosts {
		if g.next <= now {
			due = append(due, t)
		}
		wait = min(wait, max(g.next-now, time.Millisecond))
	}
	select {
	case <-j.closed:
		idle = true
	default:
		idle = len(j.ghosts) == 0
	}
	j.active = !idle
	return due, wait, idle
}

// tidiers is how many things are settled at once: a server that is silent, one of
// several perhaps, must not hold up the rest.
const tidiers = 16

// tidy settles each once.
func (j *janitor) tidy(due []unsettled) {
	places := make(chan struct{}, tidiers)
	var tidying sync.WaitGroup
	for _, t := range due {
		select {
		case places <- struct{}{}:
		case <-j.closed: // which looks at each once more itself, and sooner gives up
			tidying.Wait()
			return
		}
		tidying.Go(func() {
			answered := false
			if t.seat().try() { // else whoever has it is talking to the server about it
				answered = j.settle(context.Background(), t)
				t.seat().give()
			}
			j.later(t, answered)
			<-places
		})
	}
	tidying.Wait()
}

// later plans the next time, twice as far away as the last, or forgets the matter
// when nothing can be executed late any more: its time is over and the server has
// answered since, or twice its time is over.
func (j *janitor) later(t unsettled, answered bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	g, now := j.ghosts[t], j.client.clock().mono
	if g == nil {
		return
	}
	if answered && (g.once || now >= g.until) || now >= g.until+g.span {
		delete(j.ghosts, t)
		return
	}
	g.next = now + jitter(g.pause)
	if now < g.until {
		g.next = min(g.next, g.until)
	}
	g.pause = min(2*g.pause, longTidy)
}

// settle reports whether the server answered. The turn is held.
func (j *janitor) settle(ctx context.Context, t unsettled) bool {
	ctx, cancel := context.WithTimeout(ctx, j.client.caller.patience)
	defer cancel()
	return t.settleUp(ctx, j.closed)
}

func (t *tenure) seat() *turn { return &t.turn }

func (t *tenure) settleUp(ctx context.Context, stop <-chan struct{}) bool {
	a, err := t.settle(ctx, stop)
	if err != nil {
		return judge(err) == refused
	}
	t.settled(a)
	return true
}

// settled takes note of what the janitor found.
func (t *tenure) settled(a answer) {
	t.mu.Lock()
	phase := t.phase
	t.mu.Unlock()
	if phase == leaving && a.count == 0 {
		if a.null && !t.explains(a) {
			t.lose(ErrLost, "it was gone when it was released")
			return
		}
		t.gone(a)
		return
	}
	if freed := a.message.IsInt64(); freed && phase == over {
		t.client.observe(t.event(EventUndone))
	}
}

// close settles everything once more and ends the goroutine. What cannot be
// reached by then is left to its lease.
func (j *janitor) close(ctx context.Context) {
	j.mu.Lock()
	close(j.closed)
	j.mu.Unlock()
	j.tasks.Wait()
	places := make(chan struct{}, closeReleases)
	var tidying sync.WaitGroup
	var silent atomic.Bool
	for t := range j.ghosts {
		places <- struct{}{}
		if ctx.Err() != nil || silent.Load() {
			break
		}
		tidying.Go(func() {
			if t.seat().take(ctx) == nil {
				silent.CompareAndSwap(false, !j.settle(ctx, t))
				t.seat().give()
			}
			<-places
		})
	}
	tidying.Wait()
}
