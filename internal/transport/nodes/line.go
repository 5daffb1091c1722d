package nodes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Line is the work of one owner for one node, so that a silent node delays no other. It is begun in
// order. While there is work, goroutines serve the line with [Line.Serve], or one does it with
// [Line.TakeAll]. The line belongs to the node, and is dropped with it.
type Line[T any] struct {
	// Slots holds one element for each piece of work in flight, if the owner counts them.
	Slots chan struct{}

	most    int // workers
	mu      sync.Mutex
	waiting []T
	workers int  // goroutines that serve the line
	silent  bool // the node did not answer the last time
}

// LineOf returns the line of a node for the work of an owner, which is a pointer to anything.
// workers is how many goroutines may serve it at once.
func LineOf[T any](n *Node, owner any, slots, workers int) *Line[T] {
	known, found := n.lines.Load(owner)
	if !found {
		known, _ = n.lines.LoadOrStore(owner, &Line[T]{Slots: make(chan struct{}, slots), most: workers})
	}
	return known.(*Line[T])
}

// Add puts work at the end of the line. It returns true if one more goroutine has to serve the
// line: the caller then starts it.
func (l *Line[T]) Add(work T) (serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, work)
	return l.begin()
}

// begin reports whether one more goroutine may serve the line, and counts it. A silent node has
// one. l.mu is held.
func (l *Line[T]) begin() bool {
	if l.workers >= l.most || l.silent && l.workers > 0 {
		return false
	}
	l.workers++
	return true
}

// TakeAll returns the waiting work. If there is none, the goroutine that serves the line has to
// stop.
func (l *Line[T]) TakeAll() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waiting
	l.waiting = nil
	if len(all) == 0 {
		l.workers--
	}
	return all
}

// Serve does the work in the line until there is none, or ctx ends. A silent node gets one piece at
// a time, with a pause after each. When it answers, more goroutines serve the line: start starts
// them.
//
// do reports whether the node answered. It adds unfinished work to the line again.
func (l *Line[T]) Serve(
	ctx context.Context, start func(serve func()), pause func() time.Duration, do func(T) (heard bool),
) {
	for work, found := l.next(ctx); found; work, found = l.next(ctx) {
		if do(work) {
			for range l.answered() {
				start(func() { l.Serve(ctx, start, pause, do) })
			}
			continue
		}
		if l.unanswered() {
			return // another goroutine goes on
		}
		_ = retry.Rest(ctx, nil, pause())
	}
}

// next takes the first piece out of the line. A goroutine that finds none stops serving.
func (l *Line[T]) next(ctx context.Context) (work T, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || ctx.Err() != nil {
		l.workers--
		l.waiting = nil
		return work, false
	}
	var none T
	work, l.waiting[0] = l.waiting[0], none
	l.waiting = l.waiting[1:]
	return work, true
}

// answered notes that the node has answered, and returns how many more goroutines shall serve the
// line.
func (l *Line[T]) answered() (more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = false
	for more < len(l.waiting)-1 && l.begin() {
		more++
	}
	return more
}

// unanswered notes that the node did not answer, and reports whether the goroutine stops serving
// because others do.
func (l *Line[T]) unanswered() (stop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
	if l.workers > 1 {
		l.workers--
		return true
	}
	return false
}

// Shorten removes and returns the first piece that can be spared, if the node is silent and more
// than most pieces wait for it.
func (l *Line[T]) Shorten(most int, spared func(T) bool) (out T, found bool) {
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
