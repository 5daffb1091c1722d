package latchkey

import (
	"sync"
	"time"
)

// holdState is what an ownership knows of one hold, guarded by ownership.mu. It is kept apart
// from the Hold so that a Hold that was dropped without a release can be noticed.
type holdState struct {
	renew    bool
	leaving  bool // its release has begun, and its count is given up
	released bool
	reported bool            // Unlock has said so
	cause    error           // why it was lost
	lost     chan struct{}   // made on demand
	endings  map[any]*ending // contexts by their parents, and groups
	// Of a re-entry with MaxHold: the limit, what it counts from, and its timer.
	max   time.Duration
	start stamp
	limit *time.Timer
}

func (g *holdState) over() bool { return g.released || g.cause != nil }

// overBecause is why the hold is over, or nil.
func (g *holdState) overBecause() error {
	switch {
	case g.cause != nil:
		return g.cause
	case g.released || g.leaving:
		return ErrNotHeld
	}
	return nil
}

// left is what remains of the hold's own limit.
func (g *holdState) left(now stamp) time.Duration {
	if g.max == 0 {
		return never
	}
	return g.max - driftMargin(g.max) - now.since(g.start)
}

// end makes a hold over: released, or lost with a cause. It returns what
// ends with it. What guards the hold is held.
func (g *holdState) end(cause error) []*ending {
	if g.over() {
		return nil
	}
	g.cause, g.released = cause, cause == nil
	if g.lost != nil && cause != nil {
		close(g.lost)
	}
	if g.limit != nil {
		g.limit.Stop()
	}
	return g.takeEndings()
}

// whenLost returns the channel that closes with the loss. mu guards the hold.
func (g *holdState) whenLost(mu *sync.Mutex) <-chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	if g.lost == nil {
		g.lost = make(chan struct{})
		if g.cause != nil {
			close(g.lost)
		}
	}
	return g.lost
}
