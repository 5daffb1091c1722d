package latchkey

// The two sides of a read/write lock have a line each, and one subscription. What
// wakes the wait queue wakes the front of both.

// calledAtOnce is how many readers try at a hint, besides the front. The rest follow
// when one gets in.
const calledAtOnce = 32

// queueSides are the lines of a read/write lock.
type queueSides struct{ read, write *waitQueue }

// side returns the wait queue of one side, or the wait queue itself for a lock that has none.
func (q *waitQueue) side(side Kind) *waitQueue {
	if side == "" {
		return q
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	s := q.sides.Load()
	if s == nil {
		s = &queueSides{read: q.newSide(), write: q.newSide()}
		q.sides.Store(s)
	}
	if side == KindRead {
		return s.read
	}
	return s.write
}

func (q *waitQueue) newSide() *waitQueue {
	return &waitQueue{shard: q.shard, key: q.key, main: q, wake: make(chan struct{}, 1)}
}

// together reports whether this is the line of readers, who go in together.
func (q *waitQueue) together() bool {
	if q.main == nil {
		return false
	}
	s := q.main.sides.Load()
	return s != nil && s.read == q
}

// callAll lets everybody in line try.
func (q *waitQueue) callAll() { q.callFirst(-1) }

// callFirst lets the first n in line try, all of them if n is negative.
func (q *waitQueue) callFirst(n int) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	for e := q.line.Front(); e != nil && n != 0; e = e.Next() {
		nudge(e.Value.(*waiter).called)
		n--
	}
}
