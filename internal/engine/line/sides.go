package line

import (
	"slices"
	"time"

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

// sides are the lines of a key that has two. They have one subscription: what wakes the whole wakes
// both fronts. While this client shares the key with others, both fronts send commands;
// while it holds the key alone, only the front of the shared line does.
type sides struct {
	shared, exclusive *Line
	hints             uint64 // how many times those in the shared line were woken
}

// In returns the line of a side. For Only that is the line itself.
func (q *Line) In(l Side) *Line {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.side(l)
}

// side is In. shard.mu is held.
func (q *Line) side(l Side) *Line {
	if l == Only {
		return q
	}
	if q.sides == nil {
		q.sides = &sides{shared: newLine(q.shard, q.key, q, true), exclusive: newLine(q.shard, q.key, q, false)}
	}
	if l == Shared {
		return q.sides.shared
	}
	return q.sides.exclusive
}

// whole returns the line of which q is a side, or q itself.
func (q *Line) whole() *Line {
	if q.main != nil {
		return q.main
	}
	return q
}

// ExpectGrant makes the front await a grant until its next attempt, and reports whether it does: it
// cannot if the last holder to leave the lock may be a stranger.
func (q *Line) ExpectGrant() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.awaitsGrant = q.main == nil || !q.main.strangers.MayShare(time.Now())
	return q.awaitsGrant
}

// readersFirst reports whether the shared line next to this one goes first, as it does after each
// hold of the exclusive line. shard.mu is held.
func (q *Line) readersFirst() bool {
	if q.main == nil {
		return false
	}
	shared := q.main.sides.shared
	return shared.busy || len(shared.waiters) > 0
}

// exclusive returns the line whose waiters take turns with strangers. shard.mu is held.
func (q *Line) exclusive() *Line {
	if q.sides != nil {
		return q.sides.exclusive
	}
	return q
}

// acquired lets all waiters of a shared line try, because its front has acquired.
func (q *Line) acquired() {
	if !q.together {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.main.sides.wakeShared(-1)
}

// wakeShared lets the first n waiters of the shared line try, except those that others may let in.
// If n is negative, it lets all of them try. shard.mu is held.
func (l *sides) wakeShared(n int) {
	l.hints++
	for _, w := range l.shared.waiters {
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

// Hints records the hints in the line of a key before an attempt that is made outside the
// line.
type Hints struct {
	sides *sides // or nil if there were none
	hints uint64
}

// Hints is taken before the attempt.
func (all *Table) Hints(key Key) Hints {
	shard := all.lock(key.Key)
	defer shard.mu.Unlock()
	return shard.hints(key)
}

// hints returns the hints until now. s.mu is held.
func (s *shard) hints(key Key) Hints {
	q := s.lines[key]
	if q == nil || q.sides == nil {
		return Hints{}
	}
	return Hints{q.sides, q.sides.hints}
}

// TakeAll takes those waiters out of a shared line that can share what others hold, to let them in.
func (q *Line) TakeAll(what Held) (taken []*Waiter) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.waiters = slices.DeleteFunc(q.waiters, func(w *Waiter) bool {
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
