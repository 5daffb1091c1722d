package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// The goroutine at the front of a line may leave before it holds the lock. The next in line goes on with the
// owner that waits in the queue on the server, and keeps its place.

// GiveUp implements [line.Place].
func (o *ownership) GiveUp() { o.abandon(o.entry.wanted) }

// TakeOver implements [line.Recipient].
func (a *acquisition) TakeOver(left line.Place) bool {
	o := left.(*ownership)
	if a.ownership != nil || a.lock.spec != o.lock.spec || a.lock.Name() != o.lock.Name() || !o.wantLease(a.lease) {
		return false
	}
	a.ownership = o
	return true
}

// wantLease makes the owner, which waits in a queue, want that lease. It returns false if the server may have given it
// a longer one. If the grant of its entry is longer, but no longer than any such grant, the rest is undone when the
// hold is over.
func (o *ownership) wantLease(lease time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, given := o.entry, o.entry.lease
	switch {
	case e.grant != nil:
		given = e.grant.lease
	case o.doubt.acquisition():
		given = max(given, e.wanted)
	}
	switch {
	case given > max(lease, e.lease):
		return false
	case given > lease:
		o.doubt.extensionInDoubt(given)
	}
	e.wanted = lease
	return true
}

// Leave implements [line.Recipient]. An owner is left to the next in line if it has nothing except its place in the
// queue, and nobody else can have learned of it: a chosen owner has its call (hasSendMu).
func (a *acquisition) Leave() line.Place {
	o := a.ownership
	if o == nil || a.hasSendMu || a.tooFew || !o.lock.spec.passes {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != acquiring || !o.entry.mayBeQueued || o.doubt.mayBeHeld() {
		return nil
	}
	a.ownership = nil
	return o
}
