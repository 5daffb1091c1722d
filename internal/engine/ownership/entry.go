package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// OwnEntry returns the entry of an owner in the queue. It makes the entry if there is none; at the
// time made, the server did not know the owner. Only the goroutine that drives the ownership calls
// it, the first time before any message about the owner can arrive.
func (o *Ownership) OwnEntry(made lease.Stamp) *queue.Entry {
	if o.Entry == nil {
		p := o.Lock
		front := &line.Front{Table: p.Client.Lines, Key: p.LineKey(), Side: p.Spec.Line}
		e := queue.New(p.Client.Inbox, p.Names.Key, o.Wire, front, made)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.Entry = e
	}
	return o.Entry
}

// WriteEntry writes the entry of an owner that wants the lock with that lease. The entry never
// changes. made is as for OwnEntry.
func (o *Ownership) WriteEntry(wanted time.Duration, made lease.Stamp) *queue.Entry {
	e, of := o.OwnEntry(made), &o.Client.Config
	granted := min(wanted, of.StaleWaiterTimeout)
	e.Write(wanted, granted, func() string {
		return o.Wire + " " + script.MillisText(granted) + " " + o.Spec.entryTokens(of.TimeFencing)
	})
	return e
}

// WantLease makes the owner, which waits in a queue, want that lease. It returns false if the
// server may have given it a longer one. If the grant of its entry is longer, but no longer than
// any such grant, the rest is undone when the hold is over.
func (o *Ownership) WantLease(lease time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	given, ok := o.Entry.Want(lease, o.Doubt.Acquisition())
	if ok && given > lease {
		o.Doubt.ExtensionInDoubt(given)
	}
	return ok
}

// HasOnlyItsPlace reports whether the owner has a place in the queue, and can have nothing else.
func (o *Ownership) HasOnlyItsPlace() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Phase == Acquiring && o.Entry.MayBeQueued() && !o.Doubt.MayBeHeld()
}

// GiveUp implements [line.Place]. The goroutine at the front of a line may leave before it holds
// the lock. The next in line goes on with the owner that waits in the queue on the server, and
// keeps its place; if nobody is in line, nobody goes on with it.
func (o *Ownership) GiveUp() {
	_, wanted := o.Entry.Wanted()
	o.Abandon(wanted)
}
