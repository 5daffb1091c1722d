package latchkey

import "sync/atomic"

// line is one of the lines in front of a key.
type line int

const (
	onlyLine      line = iota // of a key that has one
	sharedLine                // those who stand in it may go in together
	exclusiveLine             // the one beside a shared line
)

// calledAtOnce is how many waiters of a shared line attempt at a hint, besides the front. The
// rest follow when one gets in.
const calledAtOnce = 32

// queueLines are the lines of a key that has two. They have one subscription: what wakes the
// wait queue wakes the front of both. While this client shares the key with others, their fronts ask
// all the same; while it has the key alone, only that of the shared line does.
type queueLines struct {
	shared, exclusive *waitQueue
	hints             atomic.Uint64 // how often those in the shared line were called
}

// in returns the wait queue of a line, which for the only one is the wait queue itself.
func (q *waitQueue) in(l line) *waitQueue {
	if l == onlyLine {
		return q
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.lineOf(l)
}

// lineOf is in. shard.mu is held.
func (q *waitQueue) lineOf(l line) *waitQueue {
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

// whole is the wait queue that has one line, or of whose lines this is one.
func (q *waitQueue) whole() *waitQueue {
	if q.main != nil {
		return q.main
	}
	return q
}

// wakeFronts wakes those in front who rely on what is said of the key: those of an exclusive line need
// not, while the server tells them when the key is theirs.
func (q *waitQueue) wakeFronts() {
	l := q.lines.Load()
	if l == nil || !l.exclusive.relies() {
		q.signal()
		return
	}
	q.signalFront()
	l.hints.Add(1)
	l.shared.signal()
	l.shared.callFirst(calledAtOnce)
}

// relies reports whether the front waits to be told that the key is its own.
func (q *waitQueue) relies() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.waitsToBeTold
}

// relyOnGrant says that the front waits to be told, until it asks again.
func (q *waitQueue) relyOnGrant() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.waitsToBeTold = true
}

// readersFirst reports whether it is the turn of those in the shared line beside this one: they go
// first after each hold of the exclusive line. shard.mu is held.
func (q *waitQueue) readersFirst() bool {
	if q.main == nil {
		return false
	}
	shared := q.main.lines.Load().shared
	return shared.busy || shared.line.length > 0
}

// exclusive is the line in which those stand who take turns with strangers. shard.mu is held.
func (q *waitQueue) exclusive() *waitQueue {
	if l := q.lines.Load(); l != nil {
		return l.exclusive
	}
	return q
}

func (q *waitQueue) newLine(together bool) *waitQueue {
	return &waitQueue{shard: q.shard, key: q.key, main: q, together: together, waitState: newWaitState()}
}

// callAll lets all waiters of a shared line attempt.
func (q *waitQueue) callAll() {
	if q.together {
		q.main.lines.Load().hints.Add(1)
		q.callFirst(-1)
	}
}

// hintMark is what somebody knows of the hints in the wait queue of a key who attempts before it
// stands in line.
type hintMark struct {
	lines *queueLines // or nil if there were none
	hints uint64
}

// mark is taken before the attempt.
func (all *waitQueues) mark(key string) hintMark {
	q := all.known(key)
	if q == nil {
		return hintMark{}
	}
	return q.mark()
}

// missedHint reports whether there may have been one since the mark was taken, until now. q is the
// whole wait queue.
func (m hintMark) missedHint(q *waitQueue) bool { return m != q.mark() }

func (q *waitQueue) mark() hintMark {
	l := q.lines.Load()
	if l == nil {
		return hintMark{}
	}
	return hintMark{l, l.hints.Load()}
}

// callFirst lets the first n waiters of a shared line attempt that nobody else may let in, or all
// waiters if n is negative.
func (q *waitQueue) callFirst(n int) {
	if !q.together {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	for w := q.line.first; w != nil && n != 0; w = w.after {
		if n > 0 && w.recipient != nil && w.recipient.mayBeLetIn() {
			continue
		}
		signal(w.called)
		n--
	}
}

// mayAsk reports whether a waiter that was called is still in line. It is not let in until it comes
// back: what it asks for may be granted meanwhile.
func (q *waitQueue) mayAsk(w *waiter) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	w.asks = !w.taken
	return w.asks
}

// asksNoMore says that a waiter that was called is back.
func (q *waitQueue) asksNoMore(w *waiter) {
	if !q.together {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	w.asks = false
}

// takeAll takes those out of a shared line who want what others have, to be let in.
func (q *waitQueue) takeAll(what any) (taken []*waiter) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	var next *waiter
	for w := q.line.first; w != nil; w = next {
		next = w.after
		if w.asks || w.recipient == nil || !w.recipient.wants(what) {
			continue
		}
		q.line.remove(w)
		w.taken = true
		taken = append(taken, w)
	}
	return taken
}

// opened returns what others may have along with its holders, or nil.
func (q *waitQueue) opened() any {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.open
}
