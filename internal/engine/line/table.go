package line

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// Key names what goroutines of a client wait for: an object of a kind. Others may want an object of
// another kind with the same key. They do not wait for each other here: the server decides, and
// refuses the wrong kind.
type Key struct {
	Kind keyspace.Kind
	Key  string
}

// Table has the lines of a client by their keys, and what the client holds. A held key that nobody
// waits for or queries has none, which saves memory for ten thousand such holds; a key that was
// read or contended keeps its line. It is divided into shards, so that locks of different names
// seldom block each other.
type Table struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

const shardCount = 16

type shard struct {
	mu    sync.Mutex
	lines map[Key]*Line
	live  map[string]*Links // what is held, the newest on each key
}

// NewTable returns a table without lines.
func NewTable() *Table {
	all := &Table{seed: maphash.MakeSeed()}
	for i := range all.shards {
		s := &all.shards[i]
		s.lines, s.live = map[Key]*Line{}, map[string]*Links{}
	}
	return all
}

// lock locks the shard of a key, and returns it.
func (all *Table) lock(key string) *shard {
	s := &all.shards[maphash.String(all.seed, key)%shardCount]
	s.mu.Lock()
	return s
}

// Use returns the line of key and counts the caller as a user of it.
func (all *Table) Use(key Key) *Line {
	shard := all.lock(key.Key)
	defer shard.mu.Unlock()
	return shard.use(key)
}

// enter joins the line of a key, or one of its two, or takes the front. At the front it returns no
// waiter, but what was left for it. The caller counts as a user of the whole. A waiter that made an
// attempt before tries once more if it has missed a hint: the waiter in front may wait for
// something else.
func (all *Table) enter(key Key, l Side, r Recipient, before *Earlier) (q *Line, w *Waiter, left Place) {
	shard := all.lock(key.Key)
	defer shard.mu.Unlock()
	q = shard.use(key).side(l)
	switch w = q.join(r); {
	case w == nil:
		left, q.left = q.left, nil
	case before != nil && before.Hints != shard.hints(key):
		async.Signal(w.wake)
	}
	return q, w, left
}

// use returns the line of key and counts a user. s.mu is held.
func (s *shard) use(key Key) *Line {
	q := s.lineOf(key)
	q.users++
	return q
}

// lineOf returns the line of key. If it is new, the holds on the key use it from then on.
// s.mu is held.
func (s *shard) lineOf(key Key) *Line {
	q := s.lines[key]
	if q == nil {
		q = newLine(s, key, nil, false)
		s.lines[key] = q
		for l := s.live[key.Key]; l != nil; l = l.older {
			if l.of.LineKey() == key {
				l.attach(q)
			}
		}
	}
	return q
}

// Known returns the line of a key, or nil if it has none.
func (all *Table) Known(key Key) *Line { return all.KnownSide(key, Only) }

// KnownSide is Known for one of the lines of a key. A caller that only wakes waiters need not be a
// user.
func (all *Table) KnownSide(key Key, l Side) *Line {
	shard := all.lock(key.Key)
	defer shard.mu.Unlock()
	q := shard.lines[key]
	if q == nil || l != Only && q.sides == nil {
		return nil
	}
	return q.side(l)
}

// Done ends one use. A line without users is dropped, unless its subscription lingers: then the
// notifier retires it. A line whose only users are holds is dropped too, unless the key is
// contended.
func (q *Line) Done() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.endUse()
}

// endUse is Done. shard.mu is held.
func (q *Line) endUse() {
	q.users--
	switch {
	case q.users > q.attached: // somebody other than the holds
	case q.users > 0 && (q.contended || q.open != nil || q.sub != nil || q.sides != nil): // the holds need it
	case q.sub != nil:
		q.forgetAnswers()
		q.retired = time.Now()
	default:
		q.drop()
	}
}

// drop removes the line. What is held does without it from then on. shard.mu is held.
func (q *Line) drop() {
	delete(q.shard.lines, q.key)
	for l := q.shard.live[q.key.Key]; l != nil; l = l.older {
		if l.of.LineKey() == q.key {
			l.line = nil
		}
	}
}
