package latchkey

import "github.com/latchkey-go/latchkey/internal/transport"

// Goroutines of a client that want to read what others of it read are let in along with them, in
// memory, and nothing is sent. For the server the first of them reads until the last one has left.
//
// It lasts for a turn, [Options.Turn], from when the server has let the first of them in, which it
// does when no writer waits. So a writer waits no longer for that, and for those who are inside
// then. The next reader asks the server.

// companion is an attempter that may let others of its line in along with itself.
type companion interface{ letIn(q *waitQueue) }

// letIn lets those in who wait behind an attempter that has what it waited for, and may have it
// along with it.
func letIn(q *waitQueue, a attempter) {
	if c, is := a.(companion); is {
		c.letIn(q)
	}
}

// letIn implements [companion].
func (a *acquisition) letIn(q *waitQueue) {
	if !a.lock.spec.along {
		return
	}
	o, now := a.ownership, a.lock.client.clock()
	o.mu.Lock()
	if !o.mayTakeAlong(now) {
		o.mu.Unlock()
		return
	}
	waiters := q.takeAll(o)
	holds := make([]*holdState, len(waiters))
	for i := range waiters {
		holds[i] = o.takeAlong(now)
	}
	o.mu.Unlock()
	for i, w := range waiters {
		w.pass(holds[i])
	}
}

// readsAlong has the call read along with others of its client, and reports whether it does.
func (a *acquisition) readsAlong() bool {
	if !a.mayBeLetIn() {
		return false
	}
	q := a.lock.client.waitQueues.known(a.lock.key)
	if q == nil {
		return false
	}
	o, is := q.opened().(*ownership)
	if !is || !a.forgetUnused() {
		return false
	}
	now := a.lock.client.clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.mayTakeAlong(now) || !a.wants(o) {
		return false
	}
	a.receive(o.takeAlong(now))
	return true
}

// mayBeLetIn implements [recipient]. An owner that was chosen reads alone, and so does one that
// writes.
func (a *acquisition) mayBeLetIn() bool {
	return a.lock.spec.along && a.lock.client.options.Turn > 0 && !a.hasTurn && !a.untilWhole && a.maxHold == 0
}

// forgetUnused forgets the owner for whom the call was refused, and reports whether it had none, or
// the server knows nothing of it.
func (a *acquisition) forgetUnused() bool {
	o := a.ownership
	if o == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != acquiring || o.doubt.mayBeHeld() {
		return false
	}
	o.phase, a.ownership = over, nil
	return true
}

// mayTakeAlong reports whether others may be let in along with the holders. o.mu is held.
func (o *ownership) mayTakeAlong(now transport.Stamp) bool {
	return o.mayHaveOthers(now) && o.holds.outermost().active()
}

// takeAlong makes a hold for one who is let in. o.mu is held.
func (o *ownership) takeAlong(now transport.Stamp) *holdState {
	s := &holdState{ownership: o, renew: o.holds.outermost().renew}
	s.observeFrom(now, nil)
	o.holds.join(s)
	o.local.passed = true
	return s
}
