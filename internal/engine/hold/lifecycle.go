package hold

import (
	"context"
	"maps"
	"slices"
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

// dependent is what ends with a hold: a context, or anything else.
type dependent struct {
	ctx  context.Context // nil if it is not a context
	end  context.CancelCauseFunc
	stop func() bool // cancels the call of forget when ctx ends; nil if it is not a context
}

// Dependents are what ends with a hold that is over.
type Dependents []*dependent

// End ends them. No mutex is held.
func (all Dependents) End(cause error) {
	for _, d := range all {
		if d.stop != nil {
			d.stop()
		}
		d.end(cause)
	}
}

// HasWorkUnder reports whether the hold has a context that ends with root, which is from RootOf and
// comparable.
func (l *Lifecycle) HasWorkUnder(root context.Context) bool { return l.dependents[root] != nil }

// dependentUnder is the context under a parent, or nil. mu guards the hold.
func (l *Lifecycle) dependentUnder(mu *sync.Mutex, key any) *dependent {
	mu.Lock()
	defer mu.Unlock()
	return l.dependents[key]
}

// addContext adds a context under a key, or returns the one that another goroutine has added. It
// fails if the hold is over. mu guards the hold.
func (l *Lifecycle) addContext(mu *sync.Mutex, key any, d *dependent) (context.Context, error) {
	mu.Lock()
	defer mu.Unlock()
	if err := l.OverBecause(); err != nil {
		return nil, err
	}
	if other := l.dependents[key]; other != nil {
		return other.ctx, nil
	}
	d.stop = context.AfterFunc(d.ctx, func() { l.forget(mu, key) })
	l.addDependent(key, d)
	return d.ctx, nil
}

// forget drops a dependent whose context ended before the hold. mu guards the hold.
func (l *Lifecycle) forget(mu *sync.Mutex, key any) {
	mu.Lock()
	defer mu.Unlock()
	delete(l.dependents, key)
}

// addDependent adds a dependent. The mutex of the hold is held.
func (l *Lifecycle) addDependent(key any, d *dependent) {
	if l.dependents == nil {
		l.dependents = map[any]*dependent{}
	}
	l.dependents[key] = d
}

// TakeDependents returns the dependents, which then do not end with the hold: the caller ends them
// after it has unlocked the mutex.
func (l *Lifecycle) TakeDependents() Dependents {
	all := slices.Collect(maps.Values(l.dependents))
	l.dependents = nil
	return all
}
