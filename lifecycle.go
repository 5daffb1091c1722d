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
	reported  bool   // Unlock has returned the outcome
	tail      *ended // or nil: most holds are released, and nothing ends with them
}

// ended is why a hold was lost, and what ends with it.
type ended struct {
	cause   error           // why it was lost
	lost    chan struct{}   // made on demand
	endings map[any]*ending // contexts by their parents, and composite holds
}

// cause is why the hold was lost, or nil.
func (l *lifecycle) cause() error {
	if l.tail == nil {
		return nil
	}
	return l.tail.cause
}

// ended returns the tail, and makes it if it is nil.
func (l *lifecycle) ended() *ended {
	if l.tail == nil {
		l.tail = &ended{}
	}
	return l.tail
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
func (l *lifecycle) end(cause error) []*ending {
	if l.over() {
		return nil
	}
	l.released = cause == nil
	if !l.released {
		l.ended().cause = cause
		if l.tail.lost != nil {
			close(l.tail.lost)
		}
	}
	return l.takeEndings()
}

// whenLost returns the channel that closes with the loss. mu guards the hold.
func (l *lifecycle) whenLost(mu *sync.Mutex) <-chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	e := l.ended()
	if e.lost == nil {
		e.lost = make(chan struct{})
		if e.cause != nil {
			close(e.lost)
		}
	}
	return e.lost
}

// ending is what ends with a hold: a context, or the part of the hold in a composite one.
type ending struct {
	ctx  context.Context // nil for a composite hold
	end  context.CancelCauseFunc
	stop func() bool // cancels the call of forget when ctx ends; nil for a composite hold
}

// endAll ends what takeEndings returned. No mutex is held.
func endAll(endings []*ending, cause error) {
	for _, e := range endings {
		if e.stop != nil {
			e.stop()
		}
		e.end(cause)
	}
}

// endingOf is the ending with the context under a parent, or nil. mu guards the hold.
func (l *lifecycle) endingOf(mu *sync.Mutex, key any) *ending {
	mu.Lock()
	defer mu.Unlock()
	return l.ended().endings[key]
}

// addContext adds a context under a key, or returns the one that another goroutine has added. It
// fails if the hold is over. mu guards the hold.
func (l *lifecycle) addContext(mu *sync.Mutex, key any, e *ending) (context.Context, error) {
	mu.Lock()
	defer mu.Unlock()
	if err := l.overBecause(); err != nil {
		return nil, err
	}
	if other := l.ended().endings[key]; other != nil {
		return other.ctx, nil
	}
	e.stop = context.AfterFunc(e.ctx, func() { l.forget(mu, key) })
	l.keep(key, e)
	return e.ctx, nil
}

// forget drops an ending whose context ended before the hold. mu guards the hold.
func (l *lifecycle) forget(mu *sync.Mutex, key any) {
	mu.Lock()
	defer mu.Unlock()
	delete(l.ended().endings, key)
}

// keep adds an ending. The mutex of the hold is held.
func (l *lifecycle) keep(key any, e *ending) {
	if l.ended().endings == nil {
		l.tail.endings = map[any]*ending{}
	}
	l.tail.endings[key] = e
}

// takeEndings returns the endings, which the caller ends after it has unlocked the mutex of the
// hold.
func (l *lifecycle) takeEndings() []*ending {
	if l.tail == nil {
		return nil
	}
	endings := make([]*ending, 0, len(l.tail.endings))
	for _, e := range l.tail.endings {
		endings = append(endings, e)
	}
	l.tail.endings = nil
	return endings
}
