package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/engine/line"

	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// This file is what an acquisition that waits in line does with what its client has already: holds that are passed to
// it, and owners that wait in the queue on the server.

// Recipient implements [line.Attempter].
func (a *acquisition) Recipient() line.Recipient { return a }

// Joined implements [line.Recipient].
func (a *acquisition) Joined() { a.wasInLine = true }

// Wants implements [line.Recipient]. The mutex of the ownership is held.
func (a *acquisition) Wants(from line.Held) bool {
	o := from.(*ownership.Ownership)
	return a.ownership == nil && a.lock.isFor(o) && !(o.Lock.Spec.Along && a.UntilComplete) && o.Suits(&a.Request)
}

// Receive implements [line.Recipient].
func (a *acquisition) Receive(hold line.Hold) {
	a.passed = hold.(*ownership.Hold)
	a.ownership = a.passed.Ownership
}

// MayBeLetIn implements [line.Recipient]. A call for a chosen owner reads alone, and so does a writer.
func (a *acquisition) MayBeLetIn() bool {
	return a.lock.spec.Along && a.lock.Client.Config.Turn > 0 && !a.hasSendMu && !a.UntilComplete && a.MaxHold == 0
}

// LetIn implements [line.Recipient].
func (a *acquisition) LetIn(q *line.Line) {
	if a.lock.spec.Along {
		a.ownership.LetIn(q)
	}
}

// readsAlong makes the call read along with others of its client if possible, and reports whether it does.
func (a *acquisition) readsAlong() bool {
	if !a.MayBeLetIn() {
		return false
	}
	q := a.lock.Client.Lines.Known(a.lock.LineKey())
	if q == nil {
		return false
	}
	o, is := q.Opened().(*ownership.Ownership)
	if !is || !a.forgetUnused() || !a.lock.isFor(o) {
		return false
	}
	if s := o.TakeAlongFor(&a.Request); s != nil {
		a.Receive(s)
		return true
	}
	return false
}

// ForgetUnused forgets the owner for which the call was refused. It reports whether there was none, or the
// server does not know it.
func (a *acquisition) forgetUnused() bool {
	if a.ownership == nil {
		return true
	}
	if !a.ownership.EndUnheld() {
		return false
	}
	a.ownership = nil
	return true
}

// Next implements [line.Recipient]. The owner has its entry in the queue.
func (a *acquisition) Next(after line.Held) line.Place {
	if !a.lock.isFor(after.(*ownership.Ownership)) || a.lock.spec.backoff != nil {
		return nil
	}
	next := a.lock.Client.Registry.Fresh(&a.lock.Lock)
	next.MakeEntry(a.Lease, a.lock.Client.Clock())
	return next
}

// TakeOver implements [line.Recipient].
func (a *acquisition) TakeOver(left line.Place) bool {
	o := left.(*ownership.Ownership)
	if a.ownership != nil || !a.lock.isFor(o) || !o.WantLease(a.Lease) {
		return false
	}
	a.ownership = o
	return true
}

// Leave implements [line.Recipient]. An owner is left to the next in line if it has nothing except its place in the
// queue, and nobody else can have learned of it: a chosen owner has its call (hasSendMu).
func (a *acquisition) Leave() line.Place {
	o := a.ownership
	if o == nil || a.hasSendMu || a.tooFew || !o.Lock.Spec.Passes || !o.HasOnlyItsPlace() {
		return nil
	}
	a.ownership = nil
	return o
}
