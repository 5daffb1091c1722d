package latchkey

import (
	"slices"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

// lineKind says which line of a key is meant.
type lineKind int

const (
	onlyLine      lineKind = iota // of a key that has one
	sharedLine                    // those in it may hold the key together
	exclusiveLine                 // the line next to a shared line
)

// wakesPerHint is how many waiters of a shared line try after a hint, in addition to the front.
// The rest follow when one of them acquires.
const wakesPerHint = 32

// queueLines are the lines of a key that has two. They have one subscription: what wakes the wait
// queue wakes both fronts. While this client shares the key with others, both fronts send commands;
// while it holds the key alone, only the front of the shared line does.
type queueLines struct {
	shared, exclusive *waitQueue
	hints             atomic.Uint64 // how many times those in the shared line were woken
}

// in returns the wait queue of a line. For onlyLine that is the wait queue itself.
func (q *waitQueue) in(l lineKind) *waitQueue {
	if l == onlyLine {
		return q
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.lineOf(l)
}

// lineOf is in. shard.mu is held.
func (q *waitQueue) lineOf(l lineKind) *waitQueue {
	if l == onlyLine {
		return q
	}
	lines := q.lines.Load()
	if lines == nil {
		lines = &queueLines{shared: q.newLine(true), exclusive: q.newLine(false)}
		q.lines.Store(lines)
	}
	if l == sharedLine {
		return lines.shared
	}
	return lines.exclusive
}

// whole returns the wait queue to which this line belongs, or q itself if it has one line.
func (q *waitQueue) whole() *waitQueue {
	if q.main != nil {
		return q.main
	}
	return q
}

// wakeFronts wakes the fronts that need the messages of the key. The front of an exclusive line does
// not if it awaits a grant.
func (q *waitQueue) wakeFronts() {
	l := q.lines.Load()
	if l == nil || !l.exclusive.frontAwaitsGrant() {
		q.signal()
		return
	}
	q.signalFront()
	l.wakeShared()
}

// wakeShared wakes the front of the shared line, and lets the first in line try.
func (l *queueLines) wakeShared() {
	l.hints.Add(1)
	l.shared.signalFront()
	l.shared.wakeFirst(wakesPerHint)
}

// frontAwaitsGrant reports whether the server will tell the front when it has the key.
func (q *waitQueue) frontAwaitsGrant() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.awaitsGrant
}

// noteAwaitsGrant notes that the front awaits a grant, until its next attempt.
func (q *waitQueue) noteAwaitsGrant() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.awaitsGrant = true
}

// readersFirst reports whether the shared line next to this one goes first, as it does after each
// hold of the exclusive line. shard.mu is held.
func (q *waitQueue) readersFirst() bool {
	if q.main == nil {
		return false
	}
	shared := q.main.lines.Load().shared
	return shared.busy || len(shared.line) > 0
}

// exclusive returns the line whose waiters take turns with strangers. shard.mu is held.
func (q *waitQueue) exclusive() *waitQueue {
	if l := q.lines.Load(); l != nil {
		return l.exclusive
	}
	return q
}

func (q *waitQueue) newLine(together bool) *waitQueue {
	return &waitQueue{shard: q.shard, key: q.key, main: q, together: together, waitState: newWaitState()}
}

// wakeAll lets all waiters of a shared line try.
func (q *waitQueue) wakeAll() {
	if q.together {
		q.main.lines.Load().hints.Add(1)
		q.wakeFirst(-1)
	}
}

// hintMark records the hints in the wait queue of a key before an attempt that is made outside the
// line.
type hintMark struct {
	lines *queueLines // or nil if there were none
	hints uint64
}

// mark is taken before the attempt.
func (all *waitQueues) mark(key lineKey) hintMark {
	q := all.known(key)
	if q == nil {
		return hintMark{}
	}
	return markOf(q)
}

// missedHint reports whether there may have been a hint since the mark was taken. q is the whole
// wait queue.
func (m hintMark) missedHint(q *waitQueue) bool { return m != markOf(q) }

func markOf(q *waitQueue) hintMark {
	l := q.lines.Load()
	if l == nil {
		return hintMark{}
	}
	return hintMark{l, l.hints.Load()}
}

// wakeFirst lets the first n waiters of a shared line try, except those that others may let in.
// If n is negative, it lets all waiters try.
func (q *waitQueue) wakeFirst(n int) {
	if !q.together {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	for _, w := range q.line {
		if n == 0 {
			return
		}
		if n > 0 && w.recipient != nil && w.recipient.mayBeLetIn() {
			continue
		}
		async.Signal(w.wake)
		n--
	}
}

// takeAll takes those waiters out of a shared line that can share what others hold, to let them in.
func (q *waitQueue) takeAll(what lineHeld) (taken []*waiter) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.line = slices.DeleteFunc(q.line, func(w *waiter) bool {
		if w.attempting || w.recipient == nil || !w.recipient.wants(what) {
			return false
		}
		w.taken = true
		taken = append(taken, w)
		return true
	})
	return taken
}

// opened returns what others may share with its holders, or nil.
func (q *waitQueue) opened() lineHeld {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.open
}
