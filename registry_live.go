package latchkey

import "iter"

// A live ownership is registered by its key, from when it begins until it is over. It uses the wait queue of
// that key while there is one.

// liveOwnerships has the live ownerships of a client, by the hash of the key: the oldest one, which links to
// the others. The mutex of the shard of the key guards it.
type liveOwnerships struct {
	shards [queueShards]map[uint64]*ownership
}

func newLiveOwnerships() *liveOwnerships {
	l := &liveOwnerships{}
	for i := range l.shards {
		l.shards[i] = map[uint64]*ownership{}
	}
	return l
}

// keyLinks are what a live ownership is linked to by its key. shard.mu guards them.
type keyLinks struct {
	next  *ownership // the next newer one on a key with the same hash, or nil
	prev  *ownership // the next older one; for the oldest, the newest
	queue *waitQueue // the line in which holds of its kind are passed on, or the whole queue; nil if there is none
}

// on iterates over the ownerships on a key, the oldest first. shard.mu is held.
func (l *liveOwnerships) on(key string, hash uint64) iter.Seq[*ownership] {
	return func(yield func(*ownership) bool) {
		for o := l.shards[hash%queueShards][hash]; o != nil; o = o.onKey.next {
			if o.lock.key == key && !yield(o) {
				return
			}
		}
	}
}

// newest returns the newest ownership on a key, or nil. shard.mu is held.
func (l *liveOwnerships) newest(key string, hash uint64) *ownership {
	oldest := l.shards[hash%queueShards][hash]
	for o := oldest; o != nil; {
		if o = o.onKey.prev; o.lock.key == key { // from the newest on
			return o
		}
		if o == oldest {
			break
		}
	}
	return nil
}

// attach implements [liveHolds].
func (l *liveOwnerships) attach(q *waitQueue, hash uint64) {
	for o := range l.on(q.key.key, hash) {
		if o.lock.lineKey() != q.key {
			continue
		}
		o.attach(q)
		o.onKey.queue.held += o.keepsOut()
		if !o.othersMayAttempt {
			o.onKey.queue.blocking++
		}
	}
}

// detach implements [liveHolds].
func (l *liveOwnerships) detach(q *waitQueue, hash uint64) {
	for o := range l.on(q.key.key, hash) {
		if o.lock.lineKey() == q.key {
			o.onKey.queue = nil
		}
	}
}

// attach makes the ownership use the wait queue of its key, which does not count its hold yet. shard.mu is
// held.
func (o *ownership) attach(q *waitQueue) {
	q.users++
	q.attached++
	o.onKey.queue = q
	if o.lock.spec.passes {
		o.onKey.queue = q.lineOf(o.lock.spec.line)
	}
}

// add adds an ownership, and returns how often its hold may be passed on.
func (l *liveOwnerships) add(o *ownership) (passes int) {
	shard, hash := o.lock.client.waitQueues.locate(o.lock.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	l.put(o, hash)
	q := shard.queues[o.lock.lineKey()]
	if q == nil {
		return endlessPasses
	}
	o.attach(q)
	o.onKey.queue.held += o.keepsOut()
	return o.onKey.queue.countHold(!o.lock.spec.permit)
}

// keepsOut is 1 if the hold keeps anybody out, and 0 for a permit: others may have permits too.
func (o *ownership) keepsOut() int32 {
	if o.lock.spec.permit {
		return 0
	}
	return 1
}

// put links an ownership in. shard.mu is held.
func (l *liveOwnerships) put(o *ownership, hash uint64) {
	all := l.shards[hash%queueShards]
	first := all[hash]
	if first == nil {
		all[hash], o.onKey.prev = o, o
		return
	}
	o.onKey.prev, first.onKey.prev.onKey.next = first.onKey.prev, o
	first.onKey.prev = o
}

// remove removes an ownership. shard.mu is held.
func (l *liveOwnerships) remove(o *ownership, hash uint64) {
	all := l.shards[hash%queueShards]
	first, next, prev := all[hash], o.onKey.next, o.onKey.prev
	switch {
	case first != o:
		prev.onKey.next = next
	case next != nil:
		first, all[hash] = next, next
	default:
		delete(all, hash)
	}
	if next == nil {
		next = first
	}
	next.onKey.prev, o.onKey.next, o.onKey.prev = prev, nil, nil
}

// find returns this client's ownership on a key for an owner as it is in Redis, or nil.
func (l *liveOwnerships) find(queues *waitQueues, key string, owner Owner) *ownership {
	shard, hash := queues.locate(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for o := range l.on(key, hash) {
		if o.number == owner.number && o.wire == owner.String() {
			return o
		}
	}
	return nil
}

// all returns all live ownerships.
func (l *liveOwnerships) all(queues *waitQueues) (all []*ownership) {
	for i, shard := range l.shards {
		mu := &queues.shards[i].mu
		mu.Lock()
		for _, o := range shard {
			for ; o != nil; o = o.onKey.next {
				all = append(all, o)
			}
		}
		mu.Unlock()
	}
	return all
}
