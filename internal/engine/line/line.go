// Package line has the lines in which the goroutines of a client wait for what others hold, and the
// loop in which the one in front waits for the server. A Table has the lines and what the client
// holds, by key; Waiting is the loop. A FIFO is a simpler line: for a RedLock, or permits with ids.
package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// A Line is where the goroutines of a client that want one key wait. The waiters on the server are
// in a queue: see package queue. Only the front of a line sends commands: ten thousand local
// waiters cost the server as much as one. While a goroutine of this client holds the key, nobody is
// in front, since the server would refuse. The hold is then passed to the first in line, or it ends
// and the first in line comes to the front.
//
// If the key has two sides, the Line is the whole, and each side has a Line of its own.
type Line struct {
	shard    *shard
	key      Key
	main     *Line         // the whole of which this is one side, if the key has two; or nil
	together bool          // a shared line, whose waiters may go in together
	signals  chan struct{} // holds one signal for the front

	// Guarded by shard.mu.
	sides    *sides // if the key has two
	noLinger bool   // the key is used once, so lingering is useless
	users    int    // goroutines in line or in front, and live holds
	attached int    // ownerships among the users
	held     int    // live holds of this client that keep others out
	blocking int    // holds of this client whose release has not failed: while there are any, nobody is in front

	waiters     []*Waiter
	busy        bool      // somebody is in front of the line
	signaled    bool      // there was a signal since TakeSignal
	awaitsGrant bool      // the server will tell the front when it has the key; the front needs no other message
	openUntil   time.Time // until then the front leaves what is free to others
	left        Place     // what the next front continues with, or nil: see exit
	open        Held      // what others may share with its holders, or nil
	answer      lastAnswer

	contended   bool                 // somebody has waited since the line came into use, or others want the key
	sub         *pubsub.Subscription // to the messages of the key, or nil
	reliedUntil time.Time            // until when the messages are needed, or zero if that has no end
	retired     time.Time            // since when nobody uses the line, while the subscription lingers
	echoes      int                  // messages of this client's own releases that have not come back yet
	strangers   turns.Strangers
	share       turns.Share
	recipe      turns.Recipe
}

func newLine(s *shard, key Key, main *Line, together bool) *Line {
	return &Line{shard: s, key: key, main: main, together: together, signals: make(chan struct{}, 1)}
}

// join puts a waiter at the end of the line. If it takes the front instead, it returns nil.
// shard.mu is held.
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
	q.waiters = append(q.waiters, w)
	return w
}

// popFirst takes the first waiter, which must exist, out of the line. shard.mu is held.
func (q *Line) popFirst() *Waiter {
	first := q.waiters[0]
	q.waiters[0] = nil
	if q.waiters = q.waiters[1:]; len(q.waiters) == 0 {
		q.waiters = nil // or it would keep the memory of the longest line
	}
	return first
}

// exit leaves the front to the next in line, which continues with left: see takeLeft. If nobody is
// in line, exit returns left. It ends the use of the line that enter began.
func (q *Line) exit(left Place) Place {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	defer q.whole().endUse()
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

// takeLeft returns what the previous front, or a release of this client, has left, or nil. For a
// goroutine that has left the line, it returns that only if nobody is in front.
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
	q.busy, q.awaitsGrant = len(q.waiters) > 0 && q.blocking == 0, false
	if q.busy {
		close(q.popFirst().ready)
	}
}

// Signal wakes the front, or the next waiter that comes there. It never blocks.
func (q *Line) Signal() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.wake(true)
}

// WakeFronts wakes the fronts that need the messages of the key. The front of an exclusive line
// does not if it awaits a grant.
func (q *Line) WakeFronts() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.wake(false)
}

// wake wakes the fronts of the key, and lets the first in a shared line try. grantees says that a
// front that awaits a grant is woken too. shard.mu is held.
func (q *Line) wake(grantees bool) {
	q.signal()
	l := q.sides
	if l == nil {
		return
	}
	if grantees || !l.exclusive.awaitsGrant {
		l.exclusive.signal()
	}
	l.shared.signal()
	l.wakeShared(wakesPerHint)
}

// signal wakes the front of this line alone. shard.mu is held.
func (q *Line) signal() {
	q.signaled = true
	async.Signal(q.signals)
}

// WakeFront wakes the front for what this client has for it. The front need not query the server,
// as after a signal.
func (q *Line) WakeFront() { async.Signal(q.signals) }

// TakeSignal reports whether there was a signal since the last TakeSignal.
func (q *Line) TakeSignal() (signaled bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	signaled, q.signaled = q.signaled, false
	return signaled
}

// drain discards a signal, because an attempt follows anyway.
func (q *Line) drain() {
	select {
	case <-q.signals:
	default:
	}
}
