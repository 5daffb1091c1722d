package latchkey

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
func (m *waitMark) begin(c *Client, kind keyspace.Kind) {
	if m.count != nil {
		return
	}
	if m.count = c.waiting[kind]; m.count != nil {
		m.count.Add(1)
	}
}

// end must follow every begin, so it is deferred.
func (m *waitMark) end() {
	if m.count != nil {
		m.count.Add(-1)
	}
}

// Waiting returns how many calls of this client wait now, by the kind of the object they wait for.
// Kinds for which no call waits are missing. It sends nothing and takes no lock.
//
// A call waits from its first refusal, or from when it lines up behind another call of this client,
// until it is about to return. Lock, Acquire, Campaign, Await, Do and the like are counted. Tries
// are not, nor are loops over [Election.Observe]. A [RedLock] counts in the client of its first member
// while it waits in line behind others of the program, and like a [MultiLock] from its first failed
// round on. While a MultiLock waits for one member, that wait counts under the kind of the member.
//
// [Client.Waiters] lists the waiters of one object in all processes.
func (c *Client) Waiting() map[Kind]int {
	now := map[Kind]int{}
	for kind, count := range c.waiting {
		if n := count.Load(); n > 0 {
			now[Kind(kind)] = int(n)
		}
	}
	return now
}
