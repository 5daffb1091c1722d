package latchkey

import "log/slog"

// endIfDue ends the ownership if its time is over, and otherwise plans anew. It reports
// whether it has ended the ownership.
func (o *ownership) endIfDue() bool {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return false
	}
	now := o.client.clock()
	if o.lease.valid(now) > 0 {
		o.plan()
		o.mu.Unlock()
		return false
	}
	cause, why := ErrLost, "its lease ran out before it could be renewed"
	if o.lease.limit.valid(now) <= 0 {
		cause, why = ErrMaxHold, "its maximum hold time is over"
	}
	after := o.doubt.mayLast(now, o.span())
	o.mu.Unlock()
	return o.endLost(cause, why, after, !o.lock.spec.reentrant)
}

// lose ends the ownership because the server no longer knows it.
func (o *ownership) lose(cause error, why string) {
	o.mu.Lock()
	after := o.doubt.mayLast(o.client.clock(), o.span())
	o.mu.Unlock()
	o.endLost(cause, why, after, true)
}

// endLost ends the ownership without a release, unless it is over already. after says that a
// command which is under way may yet lengthen the life of the key, or take it anew, so
// that it has to be released when its time should be over. alone says that nobody else is
// known to keep the key alive. Other participants of the owner and other readers may: then our
// part has to be removed, once.
func (o *ownership) endLost(cause error, why string, after, alone bool) bool {
	if !o.end(cause) {
		return false
	}
	o.client.reporter.log(noticeLost(why), o.lock.name, slog.String("owner", o.wire))
	o.observe(Event{Type: EventLost, Err: cause})
	o.endHold(0)
	o.mu.Lock()
	margin, span := driftMargin(o.lease.granted), o.span()
	o.mu.Unlock()
	if after || !alone {
		// Not before the key is gone by itself: the holder may need a moment to stop.
		o.undoLater(margin, span)
	}
	return true
}

// endHold lets the next local waiter try. told is how many subscribers received the message
// of the release: 0 if none was sent or nobody listens, -1 if it could not be published.
func (o *ownership) endHold(told int64) {
	o.queue.holdReleased(told, o.echo && told <= 0)
}

// leaveHold is endHold for a lock that others hold still.
func (o *ownership) leaveHold() { o.queue.holdLeft(o.echo) }

// end makes the ownership over, once, and ends everything that depends on it. The
// cause is nil after a release.
func (o *ownership) end(cause error) bool {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return false
	}
	o.phase, o.cause = over, cause
	endings := o.holds.clear(cause)
	o.client.watchdog.drop(o)
	o.mu.Unlock()
	o.client.registry.remove(o)
	if cause == nil {
		cause = ErrNotHeld
	}
	endAll(endings, cause)
	return true
}
