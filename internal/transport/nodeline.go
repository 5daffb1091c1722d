package transport

import (
	"context"
	"slices"
	"sync"
	"time"
)

// NodeLine is the work that its owner has for one node, in order, so that a node that is silent
// holds up no other. Somebody serves it while there is work: [NodeLine.Serve] does, or the owner
// with [NodeLine.TakeAll]. It stays with the node, and is forgotten with it.
type NodeLine[T any] struct {
	// Places holds one for each piece of work that is under way, if the owner counts them.
	Places chan struct{}

	mu      sync.Mutex
	waiting []T
	served  bool
	silent  bool // the node, when it was asked last
}

// LineOf returns the line of a node for the work of an owner, which is a pointer to anything.
// places is how much of it may be under way to the node at a time.
func LineOf[T any](n *Node, owner any, places int) *NodeLine[T] {
	known, found := n.lines.Load(owner)
	if !found {
		known, _ = n.lines.LoadOrStore(owner, &NodeLine[T]{Places: make(chan struct{}, places)})
	}
	return known.(*NodeLine[T])
}

// Add puts work at the end of the line, and reports whether nobody serves it: the caller then
// has to have it served.
func (l *NodeLine[T]) Add(work T) (serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, work)
	return l.begin()
}

// AddIfIdle is Add if nobody serves the line, and does nothing otherwise.
func (l *NodeLine[T]) AddIfIdle(work T) (serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.served {
		l.waiting = append(l.waiting, work)
	}
	return l.begin()
}

// begin has the line served by the caller, unless somebody does. l.mu is held.
func (l *NodeLine[T]) begin() bool {
	begins := !l.served
	l.served = true
	return begins
}

// TakeAll returns what waits. If nothing does, the goroutine that serves the line has to leave it.
func (l *NodeLine[T]) TakeAll() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waiting
	l.waiting, l.served = nil, len(all) > 0
	return all
}

// Serve does what is in the line until nothing is, or ctx ends. The first piece goes alone, to
// find out whether the node answers; others follow, as many at a time as there are places,
// until nothing is left or the node is silent. Then Serve pauses, and begins again with one.
//
// do reports whether the node was heard. What is still to be done it adds again.
func (l *NodeLine[T]) Serve(ctx context.Context, pause func() time.Duration, do func(T) (heard bool)) {
	for {
		probe, found := l.next(ctx, true)
		if !found {
			return
		}
		heard := do(probe)
		if several := l.note(heard); heard {
			l.drain(ctx, several, do)
		} else if Rest(ctx, nil, pause()) != nil {
			l.leave()
			return
		}
	}
}

// drain does what is in the line, several pieces at once, until nothing is or the node falls
// silent.
func (l *NodeLine[T]) drain(ctx context.Context, several int, do func(T) (heard bool)) {
	var workers sync.WaitGroup
	for range several {
		workers.Go(func() {
			for work, found := l.next(ctx, false); found && do(work); {
				work, found = l.next(ctx, false)
			}
		})
	}
	workers.Wait()
}

// next takes the first out of the line. A goroutine that serves it and finds nothing leaves it.
func (l *NodeLine[T]) next(ctx context.Context, serves bool) (work T, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || ctx.Err() != nil {
		l.served = l.served && !serves
		l.waiting = nil
		return work, false
	}
	var none T
	work, l.waiting[0] = l.waiting[0], none
	l.waiting = l.waiting[1:]
	return work, true
}

// note notes whether the node was heard, and returns how much can be done at once.
func (l *NodeLine[T]) note(heard bool) (several int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = !heard
	return min(len(l.waiting), cap(l.Places))
}

func (l *NodeLine[T]) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = false
}

// Shorten takes the first that can be spared out of the line if more than most wait for a node
// that is silent.
func (l *NodeLine[T]) Shorten(most int, spared func(T) bool) (out T, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := -1
	if l.silent && len(l.waiting) > most {
		i = slices.IndexFunc(l.waiting, spared)
	}
	if i < 0 {
		return out, false
	}
	out = l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return out, true
}
