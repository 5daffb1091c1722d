package hold

import (
	"context"
	"maps"
	"slices"
	"sync"
)

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
