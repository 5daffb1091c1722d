package latchkey

import "github.com/latchkey-go/latchkey/internal/engine/line"

// This file is what an acquisition that waits in line does with what its client has already: holds that are passed to
// it, and owners that wait in the queue on the server.

// Recipient implements [line.Attempter].
func (a *acquisition) Recipient() line.Recipient { return a }

// Joined implements [line.Recipient].
func (a *acquisition) Joined() { a.wasInLine = true }

// Wants implements [line.Recipient]. The mutex of the ownership is held.
func (a *acquisition) Wants(from line.Held) bool {
	o := from.(*ownership)
	return a.ownership == nil && a.lock.isFor(o) && !(o.lock.spec.along && a.UntilComplete) && o.suits(&a.Request)
}

// Receive implements [line.Recipient].
func (a *acquisition) Receive(hold line.Hold) {
	a.passed = hold.(*holdState)
	a.ownership = a.passed.ownership
}

// MayBeLetIn implements [line.Recipient]. A call for a chosen owner reads alone, and so does a writer.
func (a *acquisition) MayBeLetIn() bool {
	return a.lock.spec.along && a.lock.client.Config.Turn > 0 && !a.hasSendMu && !a.UntilComplete && a.MaxHold == 0
}

// LetIn implements [line.Recipient].
func (a *acquisition) LetIn(q *line.Line) {
	if a.lock.spec.along {
		a.ownership.letIn(q)
	}
}

// readsAlong makes the call read along with others of its client if possible, and reports whether it does.
func (a *acquisition) readsAlong() bool {
	if !a.MayBeLetIn() {
		return false
	}
	q := a.lock.client.Lines.Known(a.lock.lineKey())
	if q == nil {
		return false
	}
	o, is := q.Opened().(*ownership)
	if !is || !a.forgetUnused() || !a.lock.isFor(o) {
		return false
	}
	if s := o.takeAlongFor(&a.Request); s != nil {
		a.Receive(s)
		return true
	}
	return false
}

// forgetUnused forgets the owner for which the call was refused. It reports whether there was none, or the
// server does not know it.
func (a *acquisition) forgetUnused() bool {
	if a.ownership == nil {
		return true
	}
	if !a.ownership.endUnheld() {
		return false
	}
	a.ownership = nil
	return true
}

// Next implements [line.Recipient]. The owner has its entry in the queue.
func (a *acquisition) Next(after line.Held) line.Place {
	if !a.lock.isFor(after.(*ownership)) || a.lock.spec.backoff != nil {
		return nil
	}
	next := a.lock.client.registry.fresh(&a.lock.primitive)
	next.makeEntry(a.Lease, a.lock.client.Clock())
	return next
}

// TakeOver implements [line.Recipient].
func (a *acquisition) TakeOver(left line.Place) bool {
	o := left.(*ownership)
	if a.ownership != nil || !a.lock.isFor(o) || !o.wantLease(a.Lease) {
		return false
	}
	a.ownership = o
	return true
}

// Leave implements [line.Recipient]. An owner is left to the next in line if it has nothing except its place in the
// queue, and nobody else can have learned of it: a chosen owner has its call (hasSendMu).
func (a *acquisition) Leave() line.Place {
	o := a.ownership
	if o == nil || a.hasSendMu || a.tooFew || !o.lock.spec.passes || !o.hasOnlyItsPlace() {
		return nil
	}
	a.ownership = nil
	return o
}
