package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// When a release hands a contended lock over while goroutines of this client wait for it, it puts the owner with
// which the client wants the lock next into the queue, in the same command.

// ChooseNext makes the owner with which this client wants the lock again, when it releases the lock and others
// are in line: the release puts that owner into the queue. sendMu is held.
func (o *Ownership) ChooseNext() {
	if !o.Lock.Spec.Passes || o.Lock.Client.Inbox.MustPoll(o.Lock.Names.Key, 0) { // the queue would not know when it polls
		return
	}
	first := o.Links.FirstInLine()
	if first == nil {
		return
	}
	next, is := first.Next(o).(*Ownership)
	if !is {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase != Releasing { // nobody would take the owner
		return
	}
	next.Entry.ReleaseBegins()
	o.Local.Next = next
}

// chooseTurn decides whether the release leaves the mutex to other libraries.
func (o *Ownership) chooseTurn() {
	if !o.Lock.Spec.Recipe {
		return
	}
	open := o.Links.OpenFor(o.turnBegan())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Local.openMS = int16(script.Millis(open)) //nolint:gosec // it is short
}

// turnBegan returns when the server gave the ownership the lock.
func (o *Ownership) turnBegan() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	began := o.Local.ends - o.Lock.Client.Config.Turn
	return time.Now().Add(began - o.Lock.Client.Clock().Mono)
}

// leftFree records whether the release has left the mutex to other libraries.
func (o *Ownership) leftFree(a transport.Answer) {
	if !o.Lock.Spec.Recipe {
		return
	}
	o.mu.Lock()
	open := script.FromMillis(int64(o.Local.openMS))
	o.mu.Unlock()
	o.Links.LeftFree(open, !a.Message.IsInt64())
}

// takeNext returns the next owner, for the goroutine that comes to the front, or nil. o.mu is held.
func (o *Ownership) takeNext() *Ownership {
	next := o.Local.Next
	o.Local.Next = nil
	return next
}

// asLeft is what this next owner, or nil, is for a line.
func (o *Ownership) asLeft() line.Place {
	if o == nil {
		return nil
	}
	return o
}
