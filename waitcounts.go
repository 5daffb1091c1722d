package latchkey

import (
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// waitingKinds are the kinds of objects for which a call can wait.
var waitingKinds = [...]keyspace.Kind{
	keyspace.KindMutex, keyspace.KindLock, keyspace.KindFenced, keyspace.KindSpin, keyspace.KindFair, keyspace.KindRead, keyspace.KindWrite, keyspace.KindMulti, keyspace.KindRed,
	keyspace.KindSemaphore, keyspace.KindPermit, keyspace.KindFairPermit, keyspace.KindLatch, keyspace.KindBarrier, keyspace.KindElection,
}

// waitCounts has the number of calls that wait now for each kind. The map itself never changes.
type waitCounts map[keyspace.Kind]*atomic.Int64

func newWaitCounts() waitCounts {
	counts, numbers := waitCounts{}, new([len(waitingKinds)]atomic.Int64)
	for i, kind := range waitingKinds {
		counts[kind] = &numbers[i]
	}
	return counts
}

// waitMark counts one call. It is zero until the call has to wait, so a call that succeeds at once
// does not touch the counts.
type waitMark struct{ count *atomic.Int64 }

// begin counts the call until end. KindNone is not counted.
func (m *waitMark) begin(all waitCounts, kind keyspace.Kind) {
	if m.count != nil {
		return
	}
	if m.count = all[kind]; m.count != nil {
		m.count.Add(1)
	}
}

// beginFor counts the call of an attempter.
func (m *waitMark) beginFor(all waitCounts, a attempter) {
	kind, _ := a.what()
	m.begin(all, kind)
}

// end must follow every begin, so it is deferred.
func (m *waitMark) end() {
	if m.count != nil {
		m.count.Add(-1)
	}
}

// now yields how many calls wait now for each kind, without those for which none waits.
func (all waitCounts) now(yield func(keyspace.Kind, int) bool) {
	for kind, count := range all {
		if n := count.Load(); n > 0 && !yield(kind, int(n)) {
			return
		}
	}
}
