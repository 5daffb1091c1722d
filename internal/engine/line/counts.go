package line

import (
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// waitingKinds are the kinds of objects for which a call can wait.
var waitingKinds = [...]keyspace.Kind{
	keyspace.KindMutex, keyspace.KindLock, keyspace.KindFenced, keyspace.KindSpin, keyspace.KindFair,
	keyspace.KindRead, keyspace.KindWrite, keyspace.KindMulti, keyspace.KindRed, keyspace.KindSemaphore,
	keyspace.KindPermit, keyspace.KindFairPermit, keyspace.KindLatch, keyspace.KindBarrier, keyspace.KindElection,
}

// Counts has the number of calls that wait now for each kind. The map itself never changes.
type Counts map[keyspace.Kind]*atomic.Int64

// NewCounts returns counts of no calls.
func NewCounts() Counts {
	counts, numbers := Counts{}, new([len(waitingKinds)]atomic.Int64)
	for i, kind := range waitingKinds {
		counts[kind] = &numbers[i]
	}
	return counts
}

// Mark counts one call. It is zero until the call has to wait, so a call that succeeds at once
// does not touch the counts.
type Mark struct{ count *atomic.Int64 }

// Begin counts the call until end. KindNone is not counted.
func (m *Mark) Begin(all Counts, kind keyspace.Kind) {
	if m.count != nil {
		return
	}
	if m.count = all[kind]; m.count != nil {
		m.count.Add(1)
	}
}

// BeginFor counts the call of an attempter.
func (m *Mark) BeginFor(all Counts, a Attempter) {
	kind, _ := a.What()
	m.Begin(all, kind)
}

// End must follow every begin, so it is deferred.
func (m *Mark) End() {
	if m.count != nil {
		m.count.Add(-1)
	}
}

// Now yields how many calls wait now for each kind, without those for which none waits.
func (all Counts) Now(yield func(keyspace.Kind, int) bool) {
	for kind, count := range all {
		if n := count.Load(); n > 0 && !yield(kind, int(n)) {
			return
		}
	}
}
