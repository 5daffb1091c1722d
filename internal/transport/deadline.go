package transport

import (
	"context"
	"sync/atomic"
	"time"
)

// sharedDeadline makes contexts that end when the time of a call is over, or a little later. Calls
// that begin at about the same time and have about the same time share a context, so a single call
// costs nothing.
type sharedDeadline struct {
	latest [deadlineSteps + 1]atomic.Pointer[endingContext] // by how many steps of the patience are left
}

// deadlineSteps is the number of steps in the patience of a sender.
const deadlineSteps = 32

type endingContext struct {
	context.Context

	at  time.Time
	end context.CancelFunc
}

// context returns a context that ends at a time, or later by at most a sixteenth of the patience.
func (s *sharedDeadline) context(at time.Time, patience time.Duration) context.Context {
	step := max(patience/deadlineSteps, 1)
	latest := &s.latest[min(max(time.Until(at)/step, 0), deadlineSteps)]
	if c := latest.Load(); c != nil && !c.at.Before(at) && !c.at.After(at.Add(2*step)) {
		return c
	}
	c := &endingContext{at: at.Add(step)}
	c.Context, c.end = context.WithDeadline(context.Background(), c.at)
	latest.Store(c)
	return c
}
