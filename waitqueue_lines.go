package latchkey

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
// wait queue wakes the front of both. While this client holds the key, their fronts ask all the
// same.
type queueLines struct{ shared, exclusive *waitQueue }

// in returns the wait queue of a line, which for the only one is the wait queue itself.
func (q *waitQueue) in(l line) *waitQueue {
	if l == onlyLine {
		return q
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
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

func (q *waitQueue) newLine(together bool) *waitQueue {
	return &waitQueue{shard: q.shard, key: q.key, main: q, together: together, signals: make(chan struct{}, 1)}
}

// callAll lets all waiters of a shared line attempt.
func (q *waitQueue) callAll() { q.callFirst(-1) }

// callFirst lets the first n waiters of a shared line attempt, all of them if n is negative.
func (q *waitQueue) callFirst(n int) {
	if !q.together {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	for e := q.line.Front(); e != nil && n != 0; e = e.Next() {
		signal(e.Value.(*waiter).called)
		n--
	}
}
