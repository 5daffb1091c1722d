package line

import (
	"slices"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

// Side says which line of a key is meant.
type Side int

// The lines of a key.
const (
	Only      Side = iota // of a key that has one
	Shared                // those in it may hold the key together
	Exclusive             // the line next to a shared line
)

// wakesPerHint is how many waiters of a shared line try after a hint, in addition to the front.
// The rest follow when one of them acquires.
const wakesPerHint = 32

// sides are the lines of a key that has two. They have one subscription: what wakes the wait
// queue wakes both fronts. While this client shares the key with others, both fronts send commands;
// while it holds the key alone, only the front of the shared line does.
type sides struct {
	shared, exclusive *Line
	hints             atomic.Uint64 // how many times those in the shared line were woken
}

// In returns the line of a side. For Only that is the line itself.
func (q *Line) In(l Side) *Line {
	if l == Only {
		return q
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.lineOf(l)
}

// lineOf is In. shard.mu is held.
func (q *Line) lineOf(l Side) *Line {
	if l == Only {
		return q
	}
	lines := q.lines.Load()
	if lines == nil {
		lines = &sides{shared: q.newLine(true), exclusive: q.newLine(false)}
		q.lines.Store(lines)
	}
	if l == Shared {
		return lines.shared
	}
	return lines.exclusive
}

// Whole returns what the two lines of a key belong to, or q itself if the key has one line.
func (q *Line) Whole() *Line {
	if q.main != nil {
		return q.main
	}
	return q
}

// WakeFronts wakes the fronts that need the messages of the key. The front of an exclusive line does
// not if it awaits a grant.
func (q *Line) WakeFronts() {
	l := q.lines.Load()
	if l == nil || !l.exclusive.frontAwaitsGrant() {
		q.Signal()
		return
	}
	q.signalFront()
	l.wakeShared()
}

// wakeShared wakes the front of the shared line, and lets the first in line try.
func (l *sides) wakeShared() {
	l.hints.Add(1)
	l.shared.signalFront()
	l.shared.wakeFirst(wakesPerHint)
}

// frontAwaitsGrant reports whether the server will tell the front when it has the key.
func (q *Line) frontAwaitsGrant() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.awaitsGrant
}

// NoteAwaitsGrant notes that the front awaits a grant, until its next attempt.
func (q *Line) NoteAwaitsGrant() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.awaitsGrant = true
}

// readersFirst reports whether the shared line next to this one goes first, as it does after each
// hold of the exclusive line. shard.mu is held.
func (q *Line) readersFirst() bool {
	if q.main == nil {
		return false
	}
	shared := q.main.lines.Load().shared
	return shared.busy || len(shared.line) > 0
}

// exclusive returns the line whose waiters take turns with strangers. shard.mu is held.
func (q *Line) exclusive() *Line {
	if l := q.lines.Load(); l != nil {
		return l.exclusive
	}
	return q
}

func (q *Line) newLine(together bool) *Line {
	return &Line{shard: q.shard, key: q.key, main: q, together: together, state: newState()}
}

// wakeAll lets all waiters of a shared line try.
func (q *Line) wakeAll() {
	if q.together {
		q.main.lines.Load().hints.Add(1)
		q.wakeFirst(-1)
	}
}

// Hints records the hints in the line of a key before an attempt that is made outside the
// line.
type Hints struct {
	lines *sides // or nil if there were none
	hints uint64
}

// Hints is taken before the attempt.
func (all *Table) Hints(key Key) Hints {
	q := all.Known(key)
	if q == nil {
		return Hints{}
	}
	return markOf(q)
}

// missedHint reports whether there may have been a hint since the mark was taken. q is the whole
// line.
func (m Hints) missedHint(q *Line) bool { return m != markOf(q) }

func markOf(q *Line) Hints {
	l := q.lines.Load()
	if l == nil {
		return Hints{}
	}
	return Hints{l, l.hints.Load()}
}

// wakeFirst lets the first n waiters of a shared line try, except those that others may let in.
// If n is negative, it lets all waiters try.
func (q *Line) wakeFirst(n int) {
	if !q.together {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	for _, w := range q.line {
		if n == 0 {
			return
		}
		if n > 0 && w.recipient != nil && w.recipient.MayBeLetIn() {
			continue
		}
		async.Signal(w.wake)
		n--
	}
}

// TakeAll takes those waiters out of a shared line that can share what others hold, to let them in.
func (q *Line) TakeAll(what Held) (taken []*Waiter) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.line = slices.DeleteFunc(q.line, func(w *Waiter) bool {
		if w.attempting || w.recipient == nil || !w.recipient.Wants(what) {
			return false
		}
		w.taken = true
		taken = append(taken, w)
		return true
	})
	return taken
}

// Opened returns what others may share with its holders, or nil.
func (q *Line) Opened() Held {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.open
}
