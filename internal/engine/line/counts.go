package line

import (
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// Counts has the number of calls that wait now for each kind of object.
type Counts struct{ byKind sync.Map } // an *atomic.Int64 for each kind for which a call has waited

// of returns the number for a kind.
func (all *Counts) of(kind keyspace.Kind) *atomic.Int64 {
	count, found := all.byKind.Load(kind)
	if !found {
		count, _ = all.byKind.LoadOrStore(kind, new(atomic.Int64))
	}
	return count.(*atomic.Int64)
}

// Now yields how many calls wait now for each kind, without those for which none waits.
func (all *Counts) Now(yield func(keyspace.Kind, int) bool) {
	all.byKind.Range(func(kind, count any) bool {
		n := count.(*atomic.Int64).Load()
		return n == 0 || yield(kind.(keyspace.Kind), int(n))
	})
}

// Mark counts one call. It is zero until the call has to wait, so a call that succeeds at once
// does not touch the counts.
type Mark struct{ count *atomic.Int64 }

// Begin counts the call until End. KindNone is not counted.
func (m *Mark) Begin(all *Counts, kind keyspace.Kind) {
	if m.count == nil && kind != keyspace.KindNone {
		m.count = all.of(kind)
		m.count.Add(1)
	}
}

// BeginFor counts the call of an attempter.
func (m *Mark) BeginFor(all *Counts, a Attempter) {
	kind, _ := a.What()
	m.Begin(all, kind)
}

// End must follow every Begin, so it is deferred.
func (m *Mark) End() {
	if m.count != nil {
		m.count.Add(-1)
	}
}
