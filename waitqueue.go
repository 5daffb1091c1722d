package latchkey

import (
	"container/list"
	"context"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A waitQueue is what the goroutines of a client that want one key wait in. They form one
// line, and only the front of the line talks to Redis: ten thousand local waiters cost the
// server what one costs. While a goroutine of this client holds the key, the front rests
// until that hold ends, since asking would be in vain.
//
// A lock that promises no order may later be passed to the front inside the client;
// holdReleased is the place for that.
type waitQueue struct {
	shard    *queueShard
	key      string
	main     *waitQueue                 // one of whose two lines this is, or nil
	together bool                       // a shared line, whose waiters may go in together
	lines    atomic.Pointer[queueLines] // if the key has two

	signals chan struct{} // holds one signal for the front

	// Guarded by shard.mu.
	sub *subscription // to the messages of the key, or nil
	queueUse
	waitLine
	localHolds
	lastAnswer
}

// waitLine is a line of waiters with at most one in front. shard.mu guards it.
type waitLine struct {
	busy bool      // somebody is in front
	line list.List // of *waiter
}

// waiter is a place in the line.
type waiter struct {
	elem    *list.Element
	inFront chan struct{} // closed when the front is reached
	called  chan struct{} // holds a call to try without leaving the line
}

// join takes a place in the line, or the front, for which it returns nil.
func (q *waitQueue) join() *waiter {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.busy {
		q.busy = true
		return nil
	}
	w := &waiter{inFront: make(chan struct{})}
	if q.together {
		w.called = make(chan struct{}, 1)
	}
	w.elem = q.line.PushBack(w)
	return w
}

// await returns when the waiter has come to the front, or when it is called. After an
// error it has left the line.
func (q *waitQueue) await(ctx context.Context, stop <-chan struct{}, w *waiter) (inFront bool, err error) {
	if w == nil {
		return true, nil
	}
	select {
	case <-w.inFront:
		return true, nil
	case <-w.called:
		return false, nil
	case <-stop:
		err = ErrClosed
	case <-ctx.Done():
		err = transport.ContextError(ctx)
	}
	q.leave(w)
	return false, err
}

// leave takes a waiter out of the line. If it has come to the front in the meantime, the
// next one does.
func (q *waitQueue) leave(w *waiter) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	select {
	case <-w.inFront:
		q.next()
	default:
		q.line.Remove(w.elem)
	}
}

// leaveFront leaves the front to the next in line.
func (q *waitQueue) leaveFront() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.next()
}

// next moves the line up. shard.mu is held.
func (q *waitQueue) next() {
	first := q.line.Front()
	q.busy = first != nil
	if q.busy {
		close(q.line.Remove(first).(*waiter).inFront)
	}
}

// signal wakes the front, or whoever comes to the front next. It never blocks.
func (q *waitQueue) signal() {
	signal(q.signals)
	if l := q.lines.Load(); l != nil {
		l.exclusive.signal()
		l.shared.signal()
		l.shared.callFirst(calledAtOnce)
	}
}

// drain forgets a signal that came before the state was looked at anyway.
func (q *waitQueue) drain() {
	select {
	case <-q.signals:
	default:
	}
}
