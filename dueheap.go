package latchkey

import (
	"container/heap"
	"time"
)

// dueItem is an item of a [dueHeap]. The mutex of the heap also guards the item.
type dueItem interface {
	// dueAt is the time by which the heap is ordered, on the monotonic clock.
	dueAt() time.Duration
	// heapIndex is where the item stores its index: in the heap, from 0 upwards; among the fresh
	// items, from -2 downwards; or notInHeap, -1.
	heapIndex() *int32
}

// notInHeap is the index of an item that is in no heap.
const notInHeap = -1

// freshKept is the number of fresh items for which a heap keeps room.
const freshKept = 256

// dueHeap is a priority queue: the item that is due first comes first.
//
// A new item is fresh until the heap is queried for the first item. Most items are removed before
// that, which costs the same however many there are.
type dueHeap[T dueItem] struct {
	items dueItems[T]
	fresh []T
}

// put adds an item, or moves it after its due time has changed.
func (h *dueHeap[T]) put(item T) {
	switch at := *item.heapIndex(); {
	case at >= 0:
		heap.Fix(&h.items, int(at))
	case at == notInHeap: // an item that is already fresh has no order yet
		*item.heapIndex() = notInHeap - 1 - int32(len(h.fresh)) //nolint:gosec // there are fewer
		h.fresh = append(h.fresh, item)
	}
}

// remove removes an item if it is in the heap.
func (h *dueHeap[T]) remove(item T) {
	switch at := *item.heapIndex(); {
	case at >= 0:
		heap.Remove(&h.items, int(at))
	case at < notInHeap:
		last := len(h.fresh) - 1
		moved := h.fresh[last]
		h.fresh[notInHeap-1-at], *moved.heapIndex() = moved, at
		clear(h.fresh[last:])
		h.fresh = h.fresh[:last]
		*item.heapIndex() = notInHeap
	}
}

// pop removes and returns the first item, which must exist.
func (h *dueHeap[T]) pop() T {
	h.settle()
	return heap.Pop(&h.items).(T)
}

// next returns when the first item is due, or noDeadline if there is none.
func (h *dueHeap[T]) next() time.Duration {
	h.settle()
	if len(h.items) == 0 {
		return noDeadline
	}
	return h.items[0].dueAt()
}

// all returns the items, in no particular order. The result is valid until the heap changes.
func (h *dueHeap[T]) all() []T {
	h.settle()
	return h.items
}

// settle moves fresh items into the heap order.
func (h *dueHeap[T]) settle() {
	for _, item := range h.fresh {
		heap.Push(&h.items, item)
	}
	if cap(h.fresh) > freshKept {
		h.fresh = nil
		return
	}
	clear(h.fresh)
	h.fresh = h.fresh[:0]
}

// dueItems is the [heap.Interface] of a dueHeap.
type dueItems[T dueItem] []T

func (q dueItems[T]) Len() int           { return len(q) }
func (q dueItems[T]) Less(i, j int) bool { return q[i].dueAt() < q[j].dueAt() }

func (q dueItems[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	*q[i].heapIndex(), *q[j].heapIndex() = int32(i), int32(j) //nolint:gosec // there are fewer
}

// Push implements [heap.Interface].
func (q *dueItems[T]) Push(x any) {
	item := x.(T)
	*item.heapIndex() = int32(len(*q)) //nolint:gosec // there are fewer
	*q = append(*q, item)
}

// Pop implements [heap.Interface].
func (q *dueItems[T]) Pop() any {
	last := len(*q) - 1
	item := (*q)[last]
	clear((*q)[last:])
	*q = (*q)[:last]
	*item.heapIndex() = notInHeap
	return item
}
