package latchkey

import (
	"context"
	"sync"
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
	reported  bool             // Unlock has returned the outcome
	rare      *rareOfLifecycle // or nil: most holds are released, and nothing ends with them
}

// rareOfLifecycle is why a hold was lost, and what ends with it.
type rareOfLifecycle struct {
	cause      error              // why it was lost
	lost       chan struct{}      // made on demand
	dependents map[any]*dependent // contexts by their parents, and composite holds
}

// cause is why the hold was lost, or nil.
func (l *lifecycle) cause() error {
	if l.rare == nil {
		return nil
	}
	return l.rare.cause
}

// makeRare returns the rare part, and makes it if it is nil.
func (l *lifecycle) makeRare() *rareOfLifecycle {
	if l.rare == nil {
		l.rare = &rareOfLifecycle{}
	}
	return l.rare
}

func (l *lifecycle) over() bool { return l.released || l.cause() != nil }

// active reports whether nothing has begun to end the hold.
func (l *lifecycle) active() bool { return !l.over() && !l.releasing }

// overBecause says why the hold is over, or is nil.
func (l *lifecycle) overBecause() error {
	switch {
	case l.cause() != nil:
		return l.cause()
	case l.released || l.releasing:
		return ErrNotHeld
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
		l.makeRare().cause = cause
		if l.rare.lost != nil {
			close(l.rare.lost)
		}
	}
	return l.takeDependents()
}

// whenLost returns the channel that closes with the loss. mu guards the hold.
func (l *lifecycle) whenLost(mu *sync.Mutex) <-chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	rare := l.makeRare()
	if rare.lost == nil {
		rare.lost = make(chan struct{})
		if rare.cause != nil {
			close(rare.lost)
		}
	}
	return rare.lost
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
	return l.makeRare().dependents[key]
}

// addContext adds a context under a key, or returns the one that another goroutine has added. It
// fails if the hold is over. mu guards the hold.
func (l *lifecycle) addContext(mu *sync.Mutex, key any, d *dependent) (context.Context, error) {
	mu.Lock()
	defer mu.Unlock()
	if err := l.overBecause(); err != nil {
		return nil, err
	}
	if other := l.makeRare().dependents[key]; other != nil {
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
	delete(l.makeRare().dependents, key)
}

// addDependent adds a dependent. The mutex of the hold is held.
func (l *lifecycle) addDependent(key any, d *dependent) {
	if l.makeRare().dependents == nil {
		l.rare.dependents = map[any]*dependent{}
	}
	l.rare.dependents[key] = d
}

// takeDependents returns the dependents, which the caller ends after it has unlocked the mutex of
// the hold.
func (l *lifecycle) takeDependents() []*dependent {
	if l.rare == nil {
		return nil
	}
	dependents := make([]*dependent, 0, len(l.rare.dependents))
	for _, d := range l.rare.dependents {
		dependents = append(dependents, d)
	}
	l.rare.dependents = nil
	return dependents
}
