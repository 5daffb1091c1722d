// Package line has the lines in which the goroutines of a client wait for what others hold, and the loop in which the one
// in front waits for the server. A Table has the lines and what the client holds, by key; Waiting is the loop.
package line

import (
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

// A Line is where the goroutines of a client that want one key wait: the line of the key in the
// words of the pages, which call the waiters on the server a queue. It is one line, and only its
// front sends commands: ten thousand local waiters cost the server as much as one. While a
// goroutine of this client holds the key, nobody is in front, since the server would refuse. The
// hold is then passed to the first in line, or it ends and the first in line comes to
// the front.
type Line struct {
	shard *shard
	key   Key
	main  *Line                 // the queue of which this is one line, if the key has two; or nil
	lines atomic.Pointer[sides] // if the key has two

	// Guarded by shard.mu.
	together bool  // a shared line, whose waiters may go in together
	noLinger bool  // the key is used once, so lingering is useless
	users    int32 // goroutines in line or in front, and live holds
	attached int32 // ownerships among the users
	held     int32 // live holds of this client that keep others out
	blocking int32 // holds of this client whose release has not failed: while there are any, nobody is in front
	state
}

// join puts a waiter at the end of the line. If it takes the front instead, it returns nil. shard.mu is held.
func (q *Line) join(r Recipient) *Waiter {
	if !q.busy && q.blocking == 0 {
		q.busy, q.awaitsGrant = true, false
		return nil
	}
	q.contended = true
	w := &Waiter{line: q, recipient: r, ready: make(chan struct{})}
	if q.together {
		w.wake = make(chan struct{}, 1)
	}
	q.line = append(q.line, w)
	return w
}

// takeFirstLocked takes the first waiter out of the line, to pass it a hold. It returns nil if there is
// none, somebody is in front, or the waiter wants something else. shard.mu is held.
func (q *Line) takeFirstLocked(from Held) *Waiter {
	if len(q.line) == 0 || q.busy || q.readersFirst() {
		return nil
	}
	if w := q.line[0]; w.recipient == nil || !w.recipient.Wants(from) {
		return nil
	}
	w := q.popFirst()
	w.taken = true
	q.Whole().strangers.weHold()
	return w
}

// firstLocked returns the first in line, or nil. shard.mu is held.
func (q *Line) firstLocked() Recipient {
	if q.busy || len(q.line) == 0 {
		return nil
	}
	return q.line[0].recipient
}

// popFirst takes the first waiter, which must exist, out of the line. shard.mu is held.
func (q *Line) popFirst() *Waiter {
	first := q.line[0]
	q.line[0] = nil
	if q.line = q.line[1:]; len(q.line) == 0 {
		q.line = nil // or it would keep the memory of the longest line
	}
	return first
}

// exit leaves the front to the next in line, which continues with left: see takeLeft. If nobody is
// in line, exit returns left. It ends the use of the line that enter began.
func (q *Line) exit(left Place) Place {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	defer q.Whole().endUse()
	q.next()
	return q.leaveTo(left)
}

// leaveTo leaves something to the waiter that has just come to the front. It returns what nobody
// takes: left if there is no such waiter, or what was left before. shard.mu is held.
func (q *Line) leaveTo(left Place) (nobodys Place) {
	if q.busy && left != nil {
		left, q.left = q.left, left
	}
	return left
}

// takeLeft returns what the previous front, or a release of this client, has left, or nil. For a goroutine that
// has left the line, it returns that only if nobody is in front.
func (q *Line) takeLeft(inFront bool) Place {
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
func (q *Line) next() {
	q.busy, q.awaitsGrant = len(q.line) > 0 && q.blocking == 0, false
	if q.busy {
		close(q.popFirst().ready)
	}
}

// Signal wakes the front, or the next waiter that comes there. It never blocks.
func (q *Line) Signal() {
	q.signalFront()
	if l := q.lines.Load(); l != nil {
		l.exclusive.signalFront()
		l.wakeShared()
	}
}

// signalFront is signal for a key with one line.
func (q *Line) signalFront() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.signaled = true
	async.Signal(q.signals)
}

// WakeFront wakes the front for what this client has for it. The front need not query the server, as after a signal.
func (q *Line) WakeFront() { async.Signal(q.signals) }

// IsSignaled reports whether there was a signal since ForgetSignal.
func (q *Line) IsSignaled() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.signaled
}

// ForgetSignal notes that the front makes an attempt.
func (q *Line) ForgetSignal() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.signaled = false
}

// drain discards a signal, because an attempt follows anyway.
func (s *state) drain() {
	select {
	case <-s.signals:
	default:
	}
}
