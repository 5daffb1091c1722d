package acquire

import (
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// This file is what an acquisition that waits in line does with what its client has already: holds
// that are passed to it, and owners that wait in the queue on the server.

// Recipient implements [line.Attempter].
func (a *Acquisition) Recipient() line.Recipient { return a }

// Joined implements [line.Recipient].
func (a *Acquisition) Joined() { a.WasInLine = true }

// Wants implements [line.Recipient]. The mutex of the ownership is held.
func (a *Acquisition) Wants(from line.Held) bool {
	o := from.(*ownership.Ownership)
	return a.Ownership == nil && a.Lock.isFor(o) && !(o.Spec.Along && a.UntilComplete) && o.Suits(&a.Request)
}

// Receive implements [line.Recipient].
func (a *Acquisition) Receive(hold line.Hold) {
	a.passed = hold.(*ownership.Hold)
	a.Ownership = a.passed.Ownership
}

// MayBeLetIn implements [line.Recipient]. A call for a chosen owner reads alone, and so does a
// writer.
func (a *Acquisition) MayBeLetIn() bool {
	return a.Lock.Spec.Along && a.Lock.Client.Config.Turn > 0 && !a.hasSendMu && !a.UntilComplete && a.MaxHold == 0
}

// LetIn implements [line.Recipient].
func (a *Acquisition) LetIn(q *line.Line) {
	if a.Lock.Spec.Along {
		a.Ownership.LetIn(q)
	}
}

// readsAlong makes the call read along with others of its client if possible, and reports whether
// it does.
func (a *Acquisition) readsAlong() bool {
	if !a.MayBeLetIn() {
		return false
	}
	q := a.Lock.Client.Lines.Known(a.Lock.LineKey())
	if q == nil {
		return false
	}
	o, is := q.Opened().(*ownership.Ownership)
	if !is || !a.forgetUnused() || !a.Lock.isFor(o) {
		return false
	}
	if s := o.TakeAlongFor(&a.Request); s != nil {
		a.Receive(s)
		return true
	}
	return false
}

// forgetUnused forgets the owner for which the call was refused. It reports whether there was none,
// or the server does not know it.
func (a *Acquisition) forgetUnused() bool {
	if a.Ownership == nil {
		return true
	}
	if !a.Ownership.EndUnheld() {
		return false
	}
	a.Ownership = nil
	return true
}

// Next implements [line.Recipient]. The owner has its entry in the queue.
func (a *Acquisition) Next(after line.Held) line.Place {
	if !a.Lock.isFor(after.(*ownership.Ownership)) || a.Lock.Spec.Backoff != nil {
		return nil
	}
	next := ownership.Fresh(&a.Lock.Lock)
	next.WriteEntry(a.Lease, a.Lock.Client.Clock())
	return next
}

// TakeOver implements [line.Recipient].
func (a *Acquisition) TakeOver(left line.Place) bool {
	o := left.(*ownership.Ownership)
	if a.Ownership != nil || !a.Lock.isFor(o) || !o.WantLease(a.Lease) {
		return false
	}
	a.Ownership = o
	return true
}

// Leave implements [line.Recipient]. An owner is left to the next in line if it has nothing except
// its place in the queue, and nobody else can have learned of it: a chosen owner has its call
// (hasSendMu).
func (a *Acquisition) Leave() line.Place {
	o := a.Ownership
	if o == nil || a.hasSendMu || a.tooFew || !o.Spec.Passes || !o.HasOnlyItsPlace() {
		return nil
	}
	a.Ownership = nil
	return o
}
