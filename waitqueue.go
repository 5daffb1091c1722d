package latchkey

import (
	"context"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A waitQueue is what the goroutines of a client that want one key wait in. They form one
// line, and only the front of the line talks to Redis: ten thousand local waiters cost the
// server what one costs. While a goroutine of this client holds the key, nobody is in front,
// since the server would refuse: the hold is passed to the first in line (passing.go), or
// ends, and then the first in line comes to the front.
type waitQueue struct {
	shard *queueShard
	key   string
	main  *waitQueue                 // one of whose two lines this is, or nil
	lines atomic.Pointer[queueLines] // if the key has two

	// Guarded by shard.mu.
	together bool  // a shared line, whose waiters may go in together
	noLinger bool  // the key is used once, so that there is nothing to linger for
	users    int32 // goroutines in line or in front, and live holds
	attached int32 // ownerships among the users
	held     int32 // live holds of this client
	standing int32 // those of them whose release has not failed: nobody is in front meanwhile
	waitState
}

// recipient is a waiter that a hold can be passed to.
type recipient interface {
	// mayBeLetIn reports whether it need not ask itself in a shared line, because those before it
	// may let it in.
	mayBeLetIn() bool
	// wants reports whether the hold that could be passed is what it asks for.
	wants(from any) bool
	// receive has it have the hold.
	receive(hold any)
}

// waiter is a place in the line.
type waiter struct {
	recipient recipient      // of a hold, or nil for what can be passed none
	request   *permitRequest // of permits, or nil for what can be passed none
	inFront   chan struct{}  // closed when the front is reached, or something is passed
	called    chan struct{}  // holds a call to try without leaving the line
	taken     bool           // out of the line, to be passed something; shard.mu guards it until then
	asks      bool           // called, and out to ask for itself; shard.mu guards it
	inList                   // shard.mu guards it
}

// join takes a place in the line, or the front, for which it returns nil.
func (q *waitQueue) join(who any) *waiter {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.takePlace(who)
}

// takePlace is join. shard.mu is held.
func (q *waitQueue) takePlace(who any) *waiter {
	if !q.busy && q.standing == 0 {
		q.busy, q.front, q.asksNow, q.waitsToBeTold = true, permitsOf(who), false, false
		return nil
	}
	q.contended = true
	w := &waiter{inFront: make(chan struct{}), request: permitsOf(who)}
	w.recipient, _ = who.(recipient)
	if q.together {
		w.called = make(chan struct{}, 1)
	}
	q.line.add(w)
	return w
}

// place is where a waiter is, or what it has.
type place int

const (
	inLine place = iota
	inFront
	hasHold // it was passed the hold, or permits, and is out of the line
	outside // it has left
)

// await returns when the waiter has come to the front, is passed the hold, or is called.
func (q *waitQueue) await(ctx context.Context, stop <-chan struct{}, w *waiter) (place, error) {
	if w == nil {
		return inFront, nil
	}
	q.asksNoMore(w)
	var err error
	select {
	case <-w.inFront:
		return w.reached(), nil
	case <-w.called:
		if q.mayAsk(w) {
			return inLine, nil
		}
		<-w.inFront
		return hasHold, nil
	case <-stop:
		err = ErrClosed
	case <-ctx.Done():
		err = transport.ContextError(ctx)
	}
	return q.leave(w), err
}

// reached is where a waiter is whose channel is closed.
func (w *waiter) reached() place {
	if w.taken {
		return hasHold
	}
	return inFront
}

// leave takes a waiter out of the line. If it has come to the front in the meantime, the
// next one does. If it is being passed something, it has it.
func (q *waitQueue) leave(w *waiter) place {
	if q.remove(w) {
		return outside
	}
	<-w.inFront // for a moment: the hold before ends first
	return hasHold
}

// remove takes a waiter out of the line or the front, unless it was taken out of the line. What
// was left for it is left for the next.
func (q *waitQueue) remove(w *waiter) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if w.taken {
		return false
	}
	select {
	case <-w.inFront:
		q.next()
		return w.request == nil || !w.request.passed
	default:
		q.line.remove(w)
		return true
	}
}

// takeFirst takes the first in line out of it, to be passed a hold, or returns nil if there is none,
// somebody is in front, or it wants something else.
func (q *waitQueue) takeFirst(from any) *waiter {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.takeFirstFor(from)
}

// takeFirstFor is takeFirst. shard.mu is held.
func (q *waitQueue) takeFirstFor(from any) *waiter {
	w := q.line.first
	if w == nil || q.busy || q.readersFirst() {
		return nil
	}
	if w.recipient == nil || !w.recipient.wants(from) {
		return nil
	}
	q.line.remove(w)
	w.taken = true
	q.consecutive = consecutiveLimit // this client has had its turn
	q.turnGoesOn()
	return w
}

// pass gives a waiter that was taken out of the line its hold.
func (w *waiter) pass(hold any) {
	w.recipient.receive(hold)
	close(w.inFront)
}

// first returns who is the first in line, or nil.
func (q *waitQueue) first() any {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.firstInLine()
}

// firstInLine is first. shard.mu is held.
func (q *waitQueue) firstInLine() any {
	if q.busy {
		return nil
	}
	if w := q.line.first; w != nil {
		return w.recipient
	}
	return nil
}

// hasLine reports whether anybody is in line.
func (q *waitQueue) hasLine() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.line.length > 0
}

// leaveFront leaves the front to the next in line.
func (q *waitQueue) leaveFront() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.next()
}

// exit leaves the front to the next in line, who goes on with left: see takeLeft. It is returned if there is
// nobody. The use of the wait queue ends that began with enter.
func (q *waitQueue) exit(left any) any {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	defer q.whole().endUse()
	q.next()
	return q.leaveTo(left)
}

// leaveTo leaves something to the one that has just come to the front, and returns what nobody goes on
// with: left if nobody has, or what was left before. shard.mu is held.
func (q *waitQueue) leaveTo(left any) (nobodys any) {
	if q.busy && left != nil {
		left, q.left = q.left, left
	}
	return left
}

// takeLeft returns what was left by the one who was in front before, or by a release of this client,
// or nil. A goroutine that leaves the line asks for it too, if nobody is in front any more.
func (q *waitQueue) takeLeft(inFront bool) any {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !inFront && q.busy {
		return nil
	}
	left := q.left
	q.left = nil
	return left
}

// next moves the line up, unless this client holds the key. shard.mu is held.
func (q *waitQueue) next() {
	first := q.line.first
	q.busy, q.front, q.asksNow, q.waitsToBeTold = first != nil && q.standing == 0, nil, false, false
	if q.busy {
		q.line.remove(first)
		q.front = first.request
		close(first.inFront)
	}
}

// signal wakes the front, or the one that comes to the front next. It never blocks.
func (q *waitQueue) signal() {
	q.signalFront()
	if l := q.lines.Load(); l != nil {
		l.hints.Add(1)
		l.exclusive.signal()
		l.shared.signal()
		l.shared.callFirst(calledAtOnce)
	}
}

// signalFront is signal for a key that has one line.
func (q *waitQueue) signalFront() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.heard = true
	signal(q.signals)
}

// drain forgets a signal that came before the server is asked anyway.
func (s *waitState) drain() {
	select {
	case <-s.signals:
	default:
	}
}
