package line

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// Key names what goroutines of a client wait for: an object of a kind. Others may want an object of another kind
// with the same key. They do not wait for each other here: the server decides, and refuses the wrong kind.
type Key struct {
	Kind keyspace.Kind
	Key  string
}

// Table has the lines of a client by their keys, and what the client holds. A held key that nobody waits for or
// queries has none, which saves memory for ten thousand such holds; a key that was read or
// contended keeps its queue. It is divided into shards, so that locks of different names seldom
// block each other.
type Table struct {
	seed   maphash.Seed
	shards [queueShards]shard
}

const queueShards = 16

type shard struct {
	mu     sync.Mutex
	queues map[Key]*Line
	live   map[string]*Links // what is held, the newest on each key
	spare  []*Line           // for reuse: an uncontended lock should allocate none
}

// spareQueues is how many unused lines a shard keeps for reuse.
const spareQueues = 8

// NewTable returns a table without lines.
func NewTable() *Table {
	all := &Table{seed: maphash.MakeSeed()}
	for i := range all.shards {
		s := &all.shards[i]
		s.queues, s.live = map[Key]*Line{}, map[string]*Links{}
	}
	return all
}

// shard returns the shard of a key.
func (all *Table) shard(key string) *shard {
	return &all.shards[maphash.String(all.seed, key)%queueShards]
}

// Use returns the line of key and counts the caller as a user of it.
func (all *Table) Use(key Key) *Line {
	shard := all.shard(key.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.use(key)
}

// enter joins the line of a key, or one of its two, or takes the front. At the front it returns no
// waiter, but what was left for it. The caller counts as a user of the whole.
func (all *Table) enter(key Key, l Side, r Recipient) (q *Line, w *Waiter, left Place) {
	shard := all.shard(key.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q = shard.use(key).lineOf(l)
	if w = q.join(r); w == nil {
		left, q.left = q.left, nil
	}
	return q, w, left
}

// use returns the line of key and counts a user. s.mu is held.
func (s *shard) use(key Key) *Line {
	q := s.queueOf(key)
	q.users++
	return q
}

// queueOf returns the line of key. If it is new, the holds on the key use it from then on.
// s.mu is held.
func (s *shard) queueOf(key Key) *Line {
	q := s.queues[key]
	if q == nil {
		q = s.fresh(key)
		s.queues[key] = q
		s.attachTo(q)
	}
	return q
}

// Known returns the line of a key, or nil if it has none.
func (all *Table) Known(key Key) *Line {
	shard := all.shard(key.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.queues[key]
}

// KnownSide is Known for one of the lines of a key. A caller that only wakes waiters need not be a
// user: if the queue serves another key by then, there is one useless attempt.
func (all *Table) KnownSide(key Key, l Side) *Line {
	shard := all.shard(key.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	q := shard.queues[key]
	if q == nil || l != Only && q.lines.Load() == nil {
		return nil
	}
	return q.lineOf(l)
}

// fresh takes a line from the spare ones or makes one. s.mu is held.
func (s *shard) fresh(key Key) *Line {
	if n := len(s.spare); n > 0 {
		q := s.spare[n-1]
		s.spare = s.spare[:n-1]
		q.clear() // not earlier: a late message or signal may have come since its last use
		q.key = key
		return q
	}
	return &Line{shard: s, key: key, state: newState()}
}

// drop removes an unused line. A queue without a subscription is kept for reuse with another
// key. s.mu is held.
func (s *shard) drop(q *Line) {
	delete(s.queues, q.key)
	if q.subscribed() {
		return
	}
	if len(s.spare) < spareQueues {
		q.lines.Store(nil)
		q.users, q.attached, q.held, q.blocking, q.noLinger = 0, 0, 0, 0, false
		s.spare = append(s.spare, q)
	}
}

// Done ends one use. A line without users is dropped, unless its subscription lingers: then
// the notifier retires it. A queue that only holds use is dropped too, unless the key is contended.
func (q *Line) Done() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.endUse()
}

// endUse is done. shard.mu is held.
func (q *Line) endUse() {
	q.users--
	switch {
	case q.users > q.attached: // somebody other than the holds
	case q.users > 0:
		q.leaveToHolds()
	case q.subscribed():
		q.forgetAnswers()
		q.retired = time.Now()
	default:
		q.shard.drop(q)
	}
}

// leaveToHolds drops a line that only holds use, unless the key was contended. shard.mu is held.
func (q *Line) leaveToHolds() {
	if q.contended || q.open != nil || q.subscribed() || q.lines.Load() != nil {
		return
	}
	q.shard.detachFrom(q)
	q.shard.drop(q)
}

// DoNotLinger notes that nobody will use this line again.
func (q *Line) DoNotLinger() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.noLinger = true
}

// Retire implements [pubsub.Subscriber]. It drops the line if it has been unused for that long, and
// the subscription alone if the front has not relied on it for that long.
func (q *Line) Retire(linger time.Duration) bool {
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
