package async

import (
	"container/heap"
	"math"
	"time"
)

// Item is an item of a [Heap]. The mutex of the heap also guards the item.
type Item interface {
	// DueAt is the time by which the heap is ordered, on the monotonic clock.
	DueAt() time.Duration
	// HeapIndex is where the item stores its index in the heap, or NotInHeap.
	HeapIndex() *int
}

// NotInHeap is the index of an item that is in no heap.
const NotInHeap = -1

// Heap is a priority queue: the item that is due first comes first.
type Heap[T Item] []T

// Put adds an item, or moves it after its due time has changed.
func (h *Heap[T]) Put(item T) {
	if at := *item.HeapIndex(); at != NotInHeap {
		heap.Fix(h, at)
		return
	}
	heap.Push(h, item)
}

// Remove removes an item if it is in the heap.
func (h *Heap[T]) Remove(item T) {
	if at := *item.HeapIndex(); at != NotInHeap {
		heap.Remove(h, at)
	}
}

// TakeFirst removes and returns the first item, which must exist.
func (h *Heap[T]) TakeFirst() T { return heap.Pop(h).(T) }

// Next returns when the first item is due, or NoDeadline if there is none.
func (h Heap[T]) Next() time.Duration {
	if len(h) == 0 {
		return NoDeadline
	}
	return h[0].DueAt()
}

// Len implements [heap.Interface].
func (h Heap[T]) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h Heap[T]) Less(i, j int) bool { return h[i].DueAt() < h[j].DueAt() }

// Swap implements [heap.Interface].
func (h Heap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].HeapIndex(), *h[j].HeapIndex() = i, j
}

// Push implements [heap.Interface].
func (h *Heap[T]) Push(x any) {
	item := x.(T)
	*item.HeapIndex() = len(*h)
	*h = append(*h, item)
}

// Pop implements [heap.Interface].
func (h *Heap[T]) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*item.HeapIndex() = NotInHeap
	return item
}

// NoDeadline is the time until something that never happens.
const NoDeadline = time.Duration(math.MaxInt64)
