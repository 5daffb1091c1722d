package latchkey

import (
	"container/heap"
	"time"
)

// dueItem is what can be in a [dueHeap]. What guards the heap guards it.
type dueItem interface {
	// dueAt is the time by which the heap is ordered, on the monotonic clock.
	dueAt() time.Duration
	// place is where the item keeps its place in the heap: -1 while it is in none.
	place() *int
}

// dueHeap holds what is to be done later: what is due first comes first.
type dueHeap[T dueItem] struct{ items dueItems[T] }

// put adds an item, or moves it when the time has changed at which it is due.
func (h *dueHeap[T]) put(item T) {
	if at := *item.place(); at >= 0 {
		heap.Fix(&h.items, at)
		return
	}
	heap.Push(&h.items, item)
}

// remove takes an item out, if it is in.
func (h *dueHeap[T]) remove(item T) {
	if at := *item.place(); at >= 0 {
		heap.Remove(&h.items, at)
	}
}

// pop takes out the first item, which has to be there.
func (h *dueHeap[T]) pop() T { return heap.Pop(&h.items).(T) }

// next returns when the first item is due, or never.
func (h *dueHeap[T]) next() time.Duration {
	if len(h.items) == 0 {
		return noDeadline
	}
	return h.items[0].dueAt()
}

// dueItems is the [heap.Interface] of a dueHeap.
type dueItems[T dueItem] []T

func (q dueItems[T]) Len() int           { return len(q) }
func (q dueItems[T]) Less(i, j int) bool { return q[i].dueAt() < q[j].dueAt() }

func (q dueItems[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	*q[i].place(), *q[j].place() = i, j
}

// Push is part of [heap.Interface].
func (q *dueItems[T]) Push(x any) {
	item := x.(T)
	*item.place() = len(*q)
	*q = append(*q, item)
}

// Pop is part of [heap.Interface].
func (q *dueItems[T]) Pop() any {
	last := len(*q) - 1
	item := (*q)[last]
	clear((*q)[last:])
	*q = (*q)[:last]
	*item.place() = -1
	return item
}
