package hold

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Lifecycle is the state of a hold: whether it is over, why, and what ends with it. What is held
// embeds it, and guards it with a mutex: see [Backend]. It does not refer to the handle, so that a
// handle dropped without a release can be noticed.
//
//	active ──▶ releasing ──▶ released
//	   └───────────┴───────▶ lost
type Lifecycle struct {
	releasing bool // its release has begun
	released  bool
	reported  bool // Unlock has returned the outcome

	cause      error              // why it was lost, or nil
	lost       chan struct{}      // made on demand
	dependents map[any]*dependent // contexts by their parents, and others; made on demand
}

// Active reports whether nothing has begun to end the hold.
func (l *Lifecycle) Active() bool { return !l.over() && !l.releasing }

func (l *Lifecycle) over() bool { return l.released || l.cause != nil }

// Releasing reports whether the release of the hold has begun.
func (l *Lifecycle) Releasing() bool { return l.releasing }

// Released reports whether the hold was released.
func (l *Lifecycle) Released() bool { return l.released }

// Cause says why the hold was lost. It is nil if it was not.
func (l *Lifecycle) Cause() error { return l.cause }

// OverBecause says why the hold is over, or is nil. A hold whose release has begun is over.
func (l *Lifecycle) OverBecause() error {
	switch {
	case l.cause != nil:
		return l.cause
	case l.released || l.releasing:
		return fault.ErrNotHeld
	}
	return nil
}

// Reported reports whether Unlock has returned the outcome.
func (l *Lifecycle) Reported() bool { return l.reported }

// MarkReported records that Unlock returns the outcome.
func (l *Lifecycle) MarkReported() { l.reported = true }

// MarkReleasing records that the release of the hold begins.
func (l *Lifecycle) MarkReleasing() { l.releasing = true }

// End ends the hold: released, or lost with a cause. It returns what ends with it.
func (l *Lifecycle) End(cause error) Dependents {
	if l.over() {
		return nil
	}
	l.released = cause == nil
	if !l.released {
		l.cause = cause
		if l.lost != nil {
			close(l.lost)
		}
	}
	return l.TakeDependents()
}

// OnEnd registers f to be called with the end of the hold.
func (l *Lifecycle) OnEnd(f context.CancelCauseFunc) {
	d := &dependent{end: f}
	l.addDependent(d, d)
}

// whenLost returns the channel that closes with the loss. mu guards the hold.
func (l *Lifecycle) whenLost(mu *sync.Mutex) <-chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	if l.lost == nil {
		l.lost = make(chan struct{})
		if l.cause != nil {
			close(l.lost)
		}
	}
	return l.lost
}
