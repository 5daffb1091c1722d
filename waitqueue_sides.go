package latchkey

// The two sides of a read/write lock have a line each, and one subscription. What
// wakes the wait queue wakes the front of both.

// calledAtOnce is how many readers try at a hint, besides the front. The rest follow
// when one gets in.
const calledAtOnce = 32

// queueSides are the lines of a read/write lock.
type queueSides struct{ read, write *waitQueue }

// side returns the wait queue of one side, or the wait queue itself for a lock that has none.
func (g *waitQueue) side(side Kind) *waitQueue {
	if side == "" {
		return g
	}
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	s := g.sides.Load()
	if s == nil {
		s = &queueSides{read: g.newSide(), write: g.newSide()}
		g.sides.Store(s)
	}
	if side == KindRead {
		return s.read
	}
	return s.write
}

func (g *waitQueue) newSide() *waitQueue {
	return &waitQueue{shard: g.shard, key: g.key, main: g, wake: make(chan struct{}, 1)}
}

// together reports whether this is the line of readers, who go in together.
func (g *waitQueue) together() bool {
	if g.main == nil {
		return false
	}
	s := g.main.sides.Load()
	return s != nil && s.read == g
}

// callAll lets everybody in line try.
func (g *waitQueue) callAll() { g.callFirst(-1) }

// callFirst lets the first n in line try, all of them if n is negative.
func (g *waitQueue) callFirst(n int) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	for e := g.line.Front(); e != nil && n != 0; e = e.Next() {
		nudge(e.Value.(*waiter).called)
		n--
	}
}
