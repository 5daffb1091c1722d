package line

import (
	"maps"
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// Counts has the number of calls that wait now for each kind of object.
type Counts struct {
	mu     sync.Mutex
	byKind map[keyspace.Kind]int // without kinds for which no call waits
}

func (all *Counts) add(kind keyspace.Kind, n int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byKind == nil {
		all.byKind = map[keyspace.Kind]int{}
	}
	if all.byKind[kind] += n; all.byKind[kind] == 0 {
		delete(all.byKind, kind)
	}
}

// Now returns how many calls wait now for each kind, without those for which none waits.
func (all *Counts) Now() map[keyspace.Kind]int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return maps.Clone(all.byKind)
}

// Mark counts one call. It is zero until the call has to wait, so a call that succeeds at once
// does not touch the counts.
type Mark struct {
	all  *Counts
	kind keyspace.Kind
}

// Begin counts the call until End. KindNone is not counted.
func (m *Mark) Begin(all *Counts, kind keyspace.Kind) {
	if m.all == nil && kind != keyspace.KindNone {
		m.all, m.kind = all, kind
		all.add(kind, 1)
	}
}

// BeginFor counts the call of an attempter.
func (m *Mark) BeginFor(all *Counts, a Attempter) {
	kind, _ := a.What()
	m.Begin(all, kind)
}

// End must follow every Begin, so it is deferred.
func (m *Mark) End() {
	if m.all != nil {
		m.all.add(m.kind, -1)
	}
}
