package latchkey

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// lifecycle is the state of a hold: whether it is over, why, and what ends with it. A mutex of the
// [holdBackend] guards it. It does not refer to the Hold, so that a Hold dropped without a release
// can be noticed.
//
//	active ──▶ releasing ──▶ released
//	   └───────────┴───────▶ lost
type lifecycle struct {
	releasing bool // its release has begun
	released  bool
	reported  bool // Unlock has returned the outcome

	cause      error              // why it was lost, or nil
	lost       chan struct{}      // made on demand
	dependents map[any]*dependent // contexts by their parents, and composite holds; made on demand
}

func (l *lifecycle) over() bool { return l.released || l.cause != nil }

// active reports whether nothing has begun to end the hold.
func (l *lifecycle) active() bool { return !l.over() && !l.releasing }

// overBecause says why the hold is over, or is nil.
func (l *lifecycle) overBecause() error {
	switch {
	case l.cause != nil:
		return l.cause
	case l.released || l.releasing:
		return fault.ErrNotHeld
	}
	return nil
}

// end ends a hold: released, or lost with a cause. It returns what ends with it. The mutex of the
// hold is held.
func (l *lifecycle) end(cause error) []*dependent {
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
	return l.takeDependents()
}

// whenLost returns the channel that closes with the loss. mu guards the hold.
func (l *lifecycle) whenLost(mu *sync.Mutex) <-chan struct{} {
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

// dependent is what ends with a hold: a context, or the part of the hold in a composite one.
type dependent struct {
	ctx  context.Context // nil for a composite hold
	end  context.CancelCauseFunc
	stop func() bool // cancels the call of forget when ctx ends; nil for a composite hold
}

// endDependents ends what takeDependents returned. No mutex is held.
func endDependents(dependents []*dependent, cause error) {
	for _, d := range dependents {
		if d.stop != nil {
			d.stop()
		}
		d.end(cause)
	}
}

// dependentUnder is the context under a parent, or nil. mu guards the hold.
func (l *lifecycle) dependentUnder(mu *sync.Mutex, key any) *dependent {
	mu.Lock()
	defer mu.Unlock()
	return l.dependents[key]
}

// addContext adds a context under a key, or returns the one that another goroutine has added. It
// fails if the hold is over. mu guards the hold.
func (l *lifecycle) addContext(mu *sync.Mutex, key any, d *dependent) (context.Context, error) {
	mu.Lock()
	defer mu.Unlock()
	if err := l.overBecause(); err != nil {
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
func (l *lifecycle) forget(mu *sync.Mutex, key any) {
	mu.Lock()
	defer mu.Unlock()
	delete(l.dependents, key)
}

// addDependent adds a dependent. The mutex of the hold is held.
func (l *lifecycle) addDependent(key any, d *dependent) {
	if l.dependents == nil {
		l.dependents = map[any]*dependent{}
	}
	l.dependents[key] = d
}

// takeDependents returns the dependents, which the caller ends after it has unlocked the mutex of
// the hold.
func (l *lifecycle) takeDependents() []*dependent {
	dependents := slices.Collect(maps.Values(l.dependents))
	l.dependents = nil
	return dependents
}
