package latchkey

import (
	"hash/maphash"
	"sync"
	"time"
)

// waitQueues has the wait queues of a client by their keys. It is split so that locks of
// different names seldom meet.
type waitQueues struct {
	seed   maphash.Seed
	shards [16]queueShard
}

type queueShard struct {
	mu     sync.Mutex
	queues map[string]*waitQueue

	// For reuse: an uncontended lock should allocate neither.
	spare       []*waitQueue
	spareStates []*waitState
}

// spareQueues is how many unused wait queues, and states, a shard keeps for reuse.
const spareQueues = 64

func newWaitQueues() *waitQueues {
	all := &waitQueues{seed: maphash.MakeSeed()}
	for i := range all.shards {
		all.shards[i].queues = map[string]*waitQueue{}
	}
	return all
}

func (all *waitQueues) shard(key string) *queueShard {
	return &all.shards[maphash.String(all.seed, key)%uint64(len(all.shards))]
}

// use returns the wait queue of key and counts the caller as a user of it.
func (all *waitQueues) use(key string) *waitQueue {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q := shard.use(key)
	q.need()
	return q
}

// enter takes a place in a line of the wait queue of a key, or the front, for which it returns no waiter,
// but what was left for it. The caller counts as a user of the whole wait queue.
func (all *waitQueues) enter(key string, l line, who any) (q *waitQueue, w *waiter, left any) {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q = shard.use(key)
	q.need()
	q = q.lineOf(l)
	if w = q.takePlace(who); w == nil {
		left, q.left = q.left, nil
	}
	return q, w, left
}

// holdBegins counts a live hold of this client in a line of the wait queue of a key, as a user of the whole,
// and returns how often the hold may be passed on.
func (all *waitQueues) holdBegins(key string, l line) (q *waitQueue, passes int) {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q = shard.use(key).lineOf(l)
	return q, q.countHold()
}

// use returns the wait queue of key, with or without a state, and counts a user. s.mu is held.
func (s *queueShard) use(key string) *waitQueue {
	q := s.queues[key]
	if q == nil {
		q = s.fresh(key)
		s.queues[key] = q
	}
	q.users++
	return q
}

// useKnown is use if there is a wait queue of the key, and returns nil otherwise.
func (all *waitQueues) useKnown(key string) *waitQueue {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q := shard.queues[key]
	if q != nil {
		q.users++
		q.need()
	}
	return q
}

// known returns the wait queue of a key, or nil if nobody uses it.
func (all *waitQueues) known(key string) *waitQueue {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.queues[key]
}

// knownLine is known for one of the lines of a key. A caller that only wakes those in it need not be a user: if it serves
// another key by then, one of them asks once too often.
func (all *waitQueues) knownLine(key string, l line) *waitQueue {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q := shard.queues[key]
	if q == nil || l != onlyLine && q.lines.Load() == nil {
		return nil
	}
	return q.lineOf(l)
}

// fresh takes a wait queue from the spare ones or makes one. s.mu is held.
func (s *queueShard) fresh(key string) *waitQueue {
	if n := len(s.spare); n > 0 {
		q := s.spare[n-1]
		s.spare = s.spare[:n-1]
		q.key = key
		return q
	}
	return &waitQueue{shard: s, key: key}
}

// drop removes an unused wait queue. One that the notifier never knew serves another
// key later. s.mu is held.
func (s *queueShard) drop(q *waitQueue) {
	delete(s.queues, q.key)
	if q.subscribed() {
		return
	}
	if q.waitState != nil {
		s.dropState(q.waitState)
	}
	if len(s.spare) < spareQueues {
		q.lines.Store(nil)
		q.waitState, q.users, q.held, q.standing, q.noLinger = nil, 0, 0, 0, false
		s.spare = append(s.spare, q)
	}
}

// done ends one use. A wait queue that nobody uses goes, unless its subscription is to
// linger: then the notifier retires it.
func (q *waitQueue) done() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.endUse()
}

// endUse is done. shard.mu is held.
func (q *waitQueue) endUse() {
	q.users--
	switch {
	case q.users > 0:
		q.endState()
	case q.subscribed():
		q.forgetAnswers()
		q.retired = time.Now()
	default:
		q.shard.drop(q)
	}
}

// doNotLinger says that nobody will come back to this wait queue.
func (q *waitQueue) doNotLinger() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.noLinger = true
}

// retire implements [subscriber]. It drops the wait queue if it has been unused for that long, and
// the subscription alone if the front has not relied on it for that long.
func (q *waitQueue) retire(linger time.Duration) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.subscribed() {
		return true
	}
	if q.users > 0 && !q.reliedUntil.IsZero() && time.Since(q.reliedUntil) > 0 {
		q.sub, q.reliedUntil = nil, time.Time{}
		return true
	}
	if q.users > 0 || !q.noLinger && time.Since(q.retired) < linger {
		return false
	}
	q.shard.drop(q)
	return true
}
