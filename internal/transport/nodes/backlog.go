package nodes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Backlog is the work of one owner for one node, so that a silent node delays no other. It is begun
// in order. While there is work, goroutines serve the backlog with [Backlog.Serve], or one does it
// with [Backlog.TakeAll]. The backlog belongs to the node, and is dropped with it.
type Backlog[T any] struct {
	// Slots holds one element for each piece of work in flight, if the owner counts them.
	Slots chan struct{}

	most    int // workers
	mu      sync.Mutex
	waiting []T
	workers int  // goroutines that serve the backlog
	silent  bool // the node did not answer the last time
}

// BacklogOf returns the backlog of a node for the work of an owner, which is a pointer to anything.
// workers is how many goroutines may serve it at once.
func BacklogOf[T any](n *Node, owner any, slots, workers int) *Backlog[T] {
	known, found := n.backlogs.Load(owner)
	if !found {
		known, _ = n.backlogs.LoadOrStore(owner, &Backlog[T]{Slots: make(chan struct{}, slots), most: workers})
	}
	return known.(*Backlog[T])
}

// Add puts work at the end of the backlog. It returns true if one more goroutine has to serve the
// backlog: the caller then starts it.
func (b *Backlog[T]) Add(work T) (serve bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, work)
	return b.begin()
}

// begin reports whether one more goroutine may serve the backlog, and counts it. A silent node has
// one. b.mu is held.
func (b *Backlog[T]) begin() bool {
	if b.workers >= b.most || b.silent && b.workers > 0 {
		return false
	}
	b.workers++
	return true
}

// TakeAll returns the waiting work. If there is none, the goroutine that serves the backlog has to
// stop.
func (b *Backlog[T]) TakeAll() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.waiting
	b.waiting = nil
	if len(all) == 0 {
		b.workers--
	}
	return all
}

// Serve does the work in the backlog until there is none, or ctx ends. A silent node gets one piece
// at a time, with a pause after each. When it answers, more goroutines serve the backlog: start
// starts them.
//
// do reports whether the node answered. It adds unfinished work to the backlog again.
func (b *Backlog[T]) Serve(
	ctx context.Context, start func(serve func()), pause func() time.Duration, do func(T) (heard bool),
) {
	for work, found := b.next(ctx); found; work, found = b.next(ctx) {
		if do(work) {
			for range b.answered() {
				start(func() { b.Serve(ctx, start, pause, do) })
			}
			continue
		}
		if b.unanswered() {
			return // another goroutine goes on
		}
		_ = retry.Rest(ctx, nil, pause())
	}
}

// next takes the first piece out of the backlog. A goroutine that finds none stops serving.
func (b *Backlog[T]) next(ctx context.Context) (work T, found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 || ctx.Err() != nil {
		b.workers--
		b.waiting = nil
		return work, false
	}
	var none T
	work, b.waiting[0] = b.waiting[0], none
	b.waiting = b.waiting[1:]
	return work, true
}

// answered notes that the node has answered, and returns how many more goroutines shall serve the
// backlog.
func (b *Backlog[T]) answered() (more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = false
	for more < len(b.waiting)-1 && b.begin() {
		more++
	}
	return more
}

// unanswered notes that the node did not answer, and reports whether the goroutine stops serving
// because others do.
func (b *Backlog[T]) unanswered() (stop bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = true
	if b.workers > 1 {
		b.workers--
		return true
	}
	return false
}

// Shorten removes and returns the first piece that can be spared, if the node is silent and more
// than most pieces wait for it.
func (b *Backlog[T]) Shorten(most int, spared func(T) bool) (out T, found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := -1
	if b.silent && len(b.waiting) > most {
		i = slices.IndexFunc(b.waiting, spared)
	}
	if i < 0 {
		return out, false
	}
	out = b.waiting[i]
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return out, true
}
