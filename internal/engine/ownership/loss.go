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
	mayLast := o.Doubt.MayLast(now, o.span())
	// The last release may be in flight, and may yet put the next owner into the queue or give it
	// the lock.
	o.Turn.Next.AcquisitionAnswered(transport.Answer{Doubt: true, DoubtAt: now, DoubtGeneration: nodes.NoGeneration})
	o.mu.Unlock()
	if !o.endLost(cause, why) {
		return false
	}
	if mayLast || o.Spec.Reentrant { // others may enter the hold and keep the key alive
		o.removeLater()
	}
	return true
}

// Lose ends the ownership because the server no longer knows it.
func (o *Ownership) Lose(cause error, why string) {
	o.mu.Lock()
	mayLast := o.Doubt.MayLast(o.Client.Clock(), o.span())
	o.mu.Unlock()
	if o.endLost(cause, why) && mayLast {
		o.removeLater()
	}
}

// endLost ends the ownership without a release, unless it is already over, and reports whether it
// did.
func (o *Ownership) endLost(cause error, why string) bool {
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
	o.LeaveFree(next, 0)
	return true
}

// removeLater removes from the key what remains of a lost ownership, after the time at which the
// key expires: the holder may need some time to stop. Something remains if a command in flight may
// still extend the key or take it again, or if other clients of the owner or other readers keep the
// key alive.
func (o *Ownership) removeLater() {
	if o.Spec.Party {
		return
	}
	o.mu.Lock()
	margin, span := lease.Margin(o.Lease.Granted), o.span()
	o.mu.Unlock()
	o.UndoLater(margin, span)
}

// LeaveFree lets the next local waiter try, because nobody may hold the lock now. receivers is how
// many subscribers received the message of the release: 0 if none was sent or nobody listens, -1 if
// it could not be published. next is as for Leave.
func (o *Ownership) LeaveFree(next *Ownership, receivers int64) {
	left, q := o.Links.HoldEnds(receivers <= 0, placeOf(next))
	line.GiveUp(left)
	if q != nil {
		q.WakeFronts()
	}
}

// Leave is LeaveFree for a lock that others still hold: they wake the waiters. The waiter that
// comes to the front goes on with next, which End has returned; if nobody comes, next is abandoned.
func (o *Ownership) Leave(next *Ownership) {
	left, _ := o.Links.HoldEnds(true, placeOf(next))
	line.GiveUp(left)
}

// End ends the ownership, once, and everything that depends on it, and reports whether it did. The
// cause is nil after a release. It returns the owner with which this client wants the lock next, or
// nil. The release may have granted the lock to that owner, so the caller passes it to LeaveFree or
// Leave.
func (o *Ownership) End(cause error) (next *Ownership, ended bool) {
	o.mu.Lock()
	if !o.Phase.begun() {
		o.mu.Unlock()
		return nil, false
	}
	o.Phase = Over
	next, o.Turn.Next = o.Turn.Next, nil
	ending := o.Holds.Clear(cause)
	o.Client.Watchdog.Drop((*watched)(o))
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
