package latchkey

import (
	"container/heap"
	"time"
)

// dueItem is an item of a [dueHeap]. The mutex of the heap also guards the item.
type dueItem interface {
	// dueAt is the time by which the heap is ordered, on the monotonic clock.
	dueAt() time.Duration
	// heapIndex is where the item stores its index in the heap, or notInHeap.
	heapIndex() *int32
}

// notInHeap is the index of an item that is in no heap.
const notInHeap = -1

// dueHeap is a priority queue: the item that is due first comes first.
type dueHeap[T dueItem] []T

// put adds an item, or moves it after its due time has changed.
func (h *dueHeap[T]) put(item T) {
	if at := *item.heapIndex(); at != notInHeap {
		heap.Fix(h, int(at))
		return
	}
	heap.Push(h, item)
}

// remove removes an item if it is in the heap.
func (h *dueHeap[T]) remove(item T) {
	if at := *item.heapIndex(); at != notInHeap {
		heap.Remove(h, int(at))
	}
}

// takeFirst removes and returns the first item, which must exist.
func (h *dueHeap[T]) takeFirst() T { return heap.Pop(h).(T) }

// next returns when the first item is due, or noDeadline if there is none.
func (h dueHeap[T]) next() time.Duration {
	if len(h) == 0 {
		return noDeadline
	}
	return h[0].dueAt()
}

func (h dueHeap[T]) Len() int           { return len(h) }
func (h dueHeap[T]) Less(i, j int) bool { return h[i].dueAt() < h[j].dueAt() }

func (h dueHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].heapIndex(), *h[j].heapIndex() = int32(i), int32(j) //nolint:gosec // there are fewer
}

// Push implements [heap.Interface].
func (h *dueHeap[T]) Push(x any) {
	item := x.(T)
	*item.heapIndex() = int32(len(*h)) //nolint:gosec // there are fewer
	*h = append(*h, item)
}

// Pop implements [heap.Interface].
func (h *dueHeap[T]) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*item.heapIndex() = notInHeap
	return item
}
