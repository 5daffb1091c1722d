package latchkey

import (
	"log/slog"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// endIfDue ends the ownership if its time is over, and otherwise plans its next check. It reports
// whether it has ended the ownership.
func (o *ownership) endIfDue() bool {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return false
	}
	now := o.lock.client.Clock()
	if o.lease.Valid(now) > 0 {
		o.plan()
		o.mu.Unlock()
		return false
	}
	cause, why := fault.ErrLost, "its lease ran out before it could be renewed"
	if o.lease.Limit.Valid(now) <= 0 {
		cause, why = fault.ErrMaxHold, "its maximum hold time is over"
	}
	mayLast := o.doubt.MayLast(now, o.span())
	// The last release may be in flight, and may yet put the next owner into the queue or give it the lock.
	o.local.next.noteDoubt(transport.Answer{Doubt: true, DoubtAt: now, DoubtGeneration: transport.NoGeneration})
	o.mu.Unlock()
	if !o.endLost(cause, why) {
		return false
	}
	if mayLast || o.lock.spec.reentrant { // others may enter the hold and keep the key alive
		o.removeLater()
	}
	return true
}

// lose ends the ownership because the server no longer knows it.
func (o *ownership) lose(cause error, why string) {
	o.mu.Lock()
	mayLast := o.doubt.MayLast(o.lock.client.Clock(), o.span())
	o.mu.Unlock()
	if o.endLost(cause, why) && mayLast {
		o.removeLater()
	}
}

// endLost ends the ownership without a release, unless it is already over, and reports whether it
// did.
func (o *ownership) endLost(cause error, why string) bool {
	next, ended := o.end(cause)
	if !ended {
		return false
	}
	if o.lock.spec.lost != nil {
		o.lock.spec.lost(o)
	} else {
		o.lock.client.Reporter.Log(report.NoticeLost(why), o.lock.Name(), slog.String("owner", o.wire))
		o.observeEnd(report.Lost, cause)
	}
	o.leaveFree(next, 0)
	return true
}

// removeLater removes from the key what remains of a lost ownership, after the time at which the
// key expires: the holder may need some time to stop. Something remains if a command in flight may
// still extend the key or take it again, or if other clients of the owner or other readers keep the
// key alive.
func (o *ownership) removeLater() {
	if o.lock.spec.party {
		return
	}
	o.mu.Lock()
	margin, span := lease.Margin(o.lease.Granted), o.span()
	o.mu.Unlock()
	o.undoLater(margin, span)
}

// leaveFree lets the next local waiter try, because nobody may hold the lock now. receivers is how many
// subscribers received the message of the release: 0 if none was sent or nobody listens, -1 if it could not be
// published. next is as for leave.
func (o *ownership) leaveFree(next *ownership, receivers int64) {
	left, q := o.links.HoldEnds(o.echo && receivers <= 0, next.asLeft())
	line.GiveUp(left)
	if q != nil {
		q.WakeFronts()
	}
}

// leave is leaveFree for a lock that others still hold: they wake the waiters. The waiter that comes to the front
// goes on with next, which end has returned; if nobody comes, next is abandoned.
func (o *ownership) leave(next *ownership) {
	left, _ := o.links.HoldEnds(o.echo, next.asLeft())
	line.GiveUp(left)
}

// end ends the ownership, once, and everything that depends on it, and reports whether it did. The
// cause is nil after a release. It returns the owner with which this client wants the lock next, or nil. The
// release may have granted the lock to that owner, so the caller passes it to leaveFree or leave.
func (o *ownership) end(cause error) (next *ownership, ended bool) {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return nil, false
	}
	o.phase = over
	next = o.takeNext()
	ending := o.holds.clear(cause)
	o.lock.client.Watchdog.Drop(o)
	o.mu.Unlock()
	o.lock.client.registry.remove(o)
	if o.lock.spec.along {
		o.links.CloseLine()
	}
	if cause == nil {
		cause = fault.ErrNotHeld
	}
	ending.End(cause)
	return next, true
}
