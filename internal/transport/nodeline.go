package transport

import (
	"context"
	"slices"
	"sync"
	"time"
)

// NodeLine is the work of one owner for one node, in order, so that a silent node delays no other.
// While there is work, a goroutine serves the line: with [NodeLine.Serve], or the owner does it
// with [NodeLine.TakeAll]. The line belongs to the node, and is dropped with it.
type NodeLine[T any] struct {
	// Slots holds one element for each piece of work in flight, if the owner counts them.
	Slots chan struct{}

	mu      sync.Mutex
	waiting []T
	served  bool
	silent  bool // the node did not answer the last time
}

// LineOf returns the line of a node for the work of an owner, which is a pointer to anything.
// slots is how many pieces of its work can be in flight to the node at once.
func LineOf[T any](n *Node, owner any, slots int) *NodeLine[T] {
	known, found := n.lines.Load(owner)
	if !found {
		known, _ = n.lines.LoadOrStore(owner, &NodeLine[T]{Slots: make(chan struct{}, slots)})
	}
	return known.(*NodeLine[T])
}

// Add puts work at the end of the line. It returns true if nobody serves the line: the caller then
// has to serve it.
func (l *NodeLine[T]) Add(work T) (serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, work)
	return l.begin()
}

// AddIfIdle is Add if nobody serves the line. Otherwise it does nothing.
func (l *NodeLine[T]) AddIfIdle(work T) (serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.served {
		l.waiting = append(l.waiting, work)
	}
	return l.begin()
}

// begin makes the caller serve the line, unless somebody does. l.mu is held.
func (l *NodeLine[T]) begin() bool {
	begins := !l.served
	l.served = true
	return begins
}

// TakeAll returns the waiting work. If there is none, the goroutine that serves the line has to
// stop.
func (l *NodeLine[T]) TakeAll() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waiting
	l.waiting, l.served = nil, len(all) > 0
	return all
}

// Serve does the work in the line until there is none, or ctx ends. The first piece goes alone, to
// find out whether the node answers. Others follow, as many at a time as there are slots, until
// none is left or the node is silent. Then Serve pauses, and starts again with one piece.
//
// do reports whether the node answered. It adds unfinished work to the line again.
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

// drain does the work in the line, several pieces at once, until none is left or the node falls
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

// next takes the first piece out of the line. A goroutine that serves the line and finds none stops
// serving.
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

// note notes whether the node answered, and returns how many pieces can be done at once.
func (l *NodeLine[T]) note(heard bool) (several int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = !heard
	return min(len(l.waiting), cap(l.Slots))
}

func (l *NodeLine[T]) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = false
}

// Shorten removes and returns the first piece that can be spared, if the node is silent and more
// than most pieces wait for it.
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
