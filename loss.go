package latchkey

import "log/slog"

// endIfDue ends the ownership if its time is over, and otherwise plans its next check. It reports
// whether it has ended the ownership.
func (o *ownership) endIfDue() bool {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return false
	}
	now := o.lock.client.clock()
	if o.lease.valid(now) > 0 {
		o.plan()
		o.mu.Unlock()
		return false
	}
	cause, why := ErrLost, "its lease ran out before it could be renewed"
	if o.lease.limit().valid(now) <= 0 {
		cause, why = ErrMaxHold, "its maximum hold time is over"
	}
	mayLast := o.doubt.mayLast(now, o.span())
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
	mayLast := o.doubt.mayLast(o.lock.client.clock(), o.span())
	o.mu.Unlock()
	if o.endLost(cause, why) && mayLast {
		o.removeLater()
	}
}

// endLost ends the ownership without a release, unless it is already over, and reports whether it
// did.
func (o *ownership) endLost(cause error, why string) bool {
	if !o.end(cause) {
		return false
	}
	if o.lock.spec.lost != nil {
		o.lock.spec.lost(o)
	} else {
		o.lock.client.reporter.log(noticeLost(why), o.lock.Name(), slog.String("owner", o.wire))
		o.observeEnd(EventLost, cause)
	}
	o.endHold(0)
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
	margin, span := driftMargin(o.lease.granted), o.span()
	o.mu.Unlock()
	o.undoLater(margin, span)
}

// endHold lets the next local waiter try. receivers is how many subscribers received the message
// of the release: 0 if none was sent or nobody listens, -1 if it could not be published.
func (o *ownership) endHold(receivers int64) {
	o.mu.Lock()
	next := o.takeNext()
	o.mu.Unlock()
	left, q := o.leaveLine(receivers, o.echo && receivers <= 0, next)
	abandonLeft(left)
	if q != nil { // if its users leave now, and it serves another key, there is one useless attempt
		q.wakeFronts()
	}
}

// leaveHold is endHold for a lock that others still hold.
func (o *ownership) leaveHold() { o.leaveLine(0, o.echo, nil) }

// end ends the ownership, once, and everything that depends on it, and reports whether it did. The
// cause is nil after a release.
func (o *ownership) end(cause error) bool {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return false
	}
	o.phase = over
	if cause != nil {
		o.makeRare().cause = cause
	}
	dependents := o.holds.clear(cause)
	o.lock.client.watchdog.drop(o)
	o.mu.Unlock()
	o.lock.client.registry.remove(o)
	if o.lock.spec.along {
		o.closeLine()
	}
	if cause == nil {
		cause = ErrNotHeld
	}
	endDependents(dependents, cause)
	return true
}
