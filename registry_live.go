package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// A live ownership is registered by its key, from when it begins until it is over. It uses the wait queue of
// that key while there is one.

// liveOwnerships has the newest live ownership of each key of a client, which links to the older ones. The
// mutex of the shard of the key guards it.
type liveOwnerships struct {
	shards [queueShards]map[string]*ownership
}

func newLiveOwnerships() *liveOwnerships {
	l := &liveOwnerships{}
	for i := range l.shards {
		l.shards[i] = map[string]*ownership{}
	}
	return l
}

// keyLinks are what a live ownership is linked to by its key. shard.mu guards them.
type keyLinks struct {
	newer, older *ownership // the next ones on the key, or nil
	queue        *waitQueue // the line in which holds of its kind are passed on, or the whole queue; nil if there is none
}

// newest returns the newest ownership on a key, or nil. s.mu is held.
func (l *liveOwnerships) newest(s *queueShard, key string) *ownership { return l.shards[s.index][key] }

// attach implements [liveHolds].
func (l *liveOwnerships) attach(q *waitQueue) {
	for o := l.newest(q.shard, q.key.key); o != nil; o = o.onKey.older {
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
func (l *liveOwnerships) detach(q *waitQueue) {
	for o := l.newest(q.shard, q.key.key); o != nil; o = o.onKey.older {
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
	shard := o.lockShard()
	defer shard.mu.Unlock()
	l.put(shard, o)
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

// put links an ownership in. s.mu is held.
func (l *liveOwnerships) put(s *queueShard, o *ownership) {
	if older := l.newest(s, o.lock.names.Key); older != nil {
		o.onKey.older, older.onKey.newer = older, o
	}
	l.shards[s.index][o.lock.names.Key] = o
}

// remove removes an ownership. s.mu is held.
func (l *liveOwnerships) remove(s *queueShard, o *ownership) {
	newer, older := o.onKey.newer, o.onKey.older
	o.onKey.newer, o.onKey.older = nil, nil
	if older != nil {
		older.onKey.newer = newer
	}
	switch {
	case newer != nil:
		newer.onKey.older = older
	case older != nil:
		l.shards[s.index][o.lock.names.Key] = older
	default:
		delete(l.shards[s.index], o.lock.names.Key)
	}
}

// find returns this client's ownership on a key for an owner as it is in Redis, or nil.
func (l *liveOwnerships) find(s *queueShard, key string, owner identity.Owner) *ownership {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := l.newest(s, key); o != nil; o = o.onKey.older {
		if o.number == owner.Number() && o.wire == owner.String() {
			return o
		}
	}
	return nil
}

// all returns all live ownerships.
func (l *liveOwnerships) all(queues *waitQueues) (all []*ownership) {
	for i, newest := range l.shards {
		mu := &queues.shards[i].mu
		mu.Lock()
		for _, o := range newest {
			for ; o != nil; o = o.onKey.older {
				all = append(all, o)
			}
		}
		mu.Unlock()
	}
	return all
}
