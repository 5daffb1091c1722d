package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/base/lease"

	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// A goroutine that wants to read a lock that others of its client read joins them in memory, and sends nothing.
// For the server, the first of them reads until the last one has left.
//
// This lasts for one turn ([Options.Turn]), from when the server has admitted the first reader, which it does
// when no writer waits. So a writer waits only for the rest of that turn and for the readers that are inside
// then. The next reader needs the server.

// LetIn implements [line.Recipient].
func (a *acquisition) LetIn(q *line.Line) {
	if !a.lock.spec.along {
		return
	}
	o, now := a.ownership, a.lock.client.clock()
	o.mu.Lock()
	if !o.mayTakeAlong(now) {
		o.mu.Unlock()
		return
	}
	waiters := q.TakeAll(o)
	holds := make([]*holdState, len(waiters))
	for i := range waiters {
		holds[i] = o.takeAlong(now)
	}
	o.mu.Unlock()
	for i, w := range waiters {
		w.Pass(holds[i])
	}
}

// readsAlong makes the call read along with others of its client if possible, and reports whether it does.
func (a *acquisition) readsAlong() bool {
	if !a.MayBeLetIn() {
		return false
	}
	q := a.lock.client.waitQueues.Known(a.lock.lineKey())
	if q == nil {
		return false
	}
	o, is := q.Opened().(*ownership)
	if !is || !a.forgetUnused() {
		return false
	}
	now := a.lock.client.clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.mayTakeAlong(now) || !a.Wants(o) {
		return false
	}
	a.Receive(o.takeAlong(now))
	return true
}

// MayBeLetIn implements [line.Recipient]. A call for a chosen owner reads alone, and so does a writer.
func (a *acquisition) MayBeLetIn() bool {
	return a.lock.spec.along && a.lock.client.options.Turn > 0 && !a.hasSendMu && !a.untilComplete && a.maxHold == 0
}

// forgetUnused forgets the owner for which the call was refused. It reports whether there was none, or the
// server does not know it.
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

// mayTakeAlong reports whether others may be let in with the holders. o.mu is held.
func (o *ownership) mayTakeAlong(now lease.Stamp) bool {
	return o.mayHaveOthers(now) && o.holds.outermost().Active()
}

// takeAlong makes a hold for a waiter that is let in. o.mu is held.
func (o *ownership) takeAlong(now lease.Stamp) *holdState {
	s := &holdState{ownership: o, renew: o.holds.outermost().renew, acquired: now}
	o.holds.join(s)
	o.local.passed = true
	return s
}
