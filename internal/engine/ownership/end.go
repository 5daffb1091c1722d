package ownership

import (
	"log/slog"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// EndIfDue ends the ownership if its time is over, and otherwise plans its next check. It reports
// whether it has ended the ownership.
func (o *Ownership) EndIfDue() bool {
	o.mu.Lock()
	if !o.Phase.begun() {
		o.mu.Unlock()
		return false
	}
	now := o.Client.Clock()
	if o.Lease.Valid(now) > 0 {
		o.plan()
		o.mu.Unlock()
		return false
	}
	cause, why := fault.ErrLost, "its lease ran out"
	if o.Lease.Limit.Valid(now) <= 0 {
		cause, why = fault.ErrMaxHold, "its MaxHold is over"
	}
	mayLast := o.Doubt.MayLast(now, o.Lease.Span())
	// The last release may be in flight, and may yet put the next owner into the queue or give it
	// the lock.
	o.Turn.Next.AcquisitionAnswered(transport.Answer{Doubt: true, DoubtAt: now, DoubtGeneration: nodes.NoGeneration})
	o.mu.Unlock()
	return o.lose(cause, why, mayLast || o.Spec.Reentrant) // others may enter it and keep the key alive
}

// Lose ends the ownership because the server no longer knows it.
func (o *Ownership) Lose(cause error, why string) {
	o.mu.Lock()
	mayLast := o.Doubt.MayLast(o.Client.Clock(), o.Lease.Span())
	o.mu.Unlock()
	o.lose(cause, why, mayLast)
}

// lose ends the ownership without a release, unless it is already over, and reports whether it did.
// If the key may last, it removes what remains there, after the time at which the key expires: the
// holder may need some time to stop. Something remains if a command in flight may still extend the
// key or take it again, or if other clients of the owner or other readers keep the key alive.
func (o *Ownership) lose(cause error, why string, mayLast bool) bool {
	next, ended := o.End(cause)
	if !ended {
		return false
	}
	if o.Spec.Lost != nil {
		o.Spec.Lost(o)
	} else {
		o.Client.Reporter.Log(report.NoticeLost(why), o.Name(), slog.String("owner", o.Wire))
		o.observeEnd(report.Lost, cause)
	}
	o.Leave(next, true, 0)
	if mayLast && !o.Spec.Party {
		o.mu.Lock()
		margin, span := lease.Margin(o.Lease.Granted), o.Doubt.Span(o.Lease.Span())
		o.mu.Unlock()
		o.UndoLater(margin, span)
	}
	return true
}

// Leave lets the line go on after End. The waiter that comes to the front goes on with next, which
// End has returned; if nobody comes, next is abandoned. If free is true, nobody may hold the lock
// now, so the next local waiter tries; if not, those that still hold it wake the waiters. receivers
// is how many subscribers received the message of the release: 0 if none was sent or nobody
// listens, -1 if it could not be published.
func (o *Ownership) Leave(next *Ownership, free bool, receivers int64) {
	left, q := o.Links.HoldEnds(receivers <= 0, placeOf(next))
	line.GiveUp(left)
	if free && q != nil {
		q.WakeFronts()
	}
}

// End ends the ownership, once, and everything that depends on it, and reports whether it did. The
// cause is nil after a release. It returns the owner with which this client wants the lock next, or
// nil. The release may have granted the lock to that owner, so the caller passes it to Leave.
func (o *Ownership) End(cause error) (next *Ownership, ended bool) {
	o.mu.Lock()
	if !o.Phase.begun() {
		o.mu.Unlock()
		return nil, false
	}
	o.Phase = Over
	next, o.Turn.Next = o.Turn.Next, nil
	ending := o.Holds.Clear(cause)
	o.Client.Watchdog.Drop(watched{o})
	o.mu.Unlock()
	o.Forget(o)
	if o.Spec.Along {
		o.Links.CloseLine()
	}
	if cause == nil {
		cause = fault.ErrNotHeld
	}
	ending.End(cause)
	return next, true
}
