package latchkey

import "log/slog"

// endIfDue ends the ownership if its time is over, and otherwise plans anew. It reports
// whether it has ended the ownership.
func (t *ownership) endIfDue() bool {
	t.mu.Lock()
	if !t.phase.begun() {
		t.mu.Unlock()
		return false
	}
	now := t.client.clock()
	if t.lease.valid(now) > 0 {
		t.plan()
		t.mu.Unlock()
		return false
	}
	cause, why := ErrLost, "its lease ran out before it could be renewed"
	if t.lease.limit.valid(now) <= 0 {
		cause, why = ErrMaxHold, "its maximum hold time is over"
	}
	after := t.doubt.mayLast(now, t.span())
	t.mu.Unlock()
	return t.endLost(cause, why, after, !t.lock.spec.reentrant)
}

// lose ends the ownership because the server no longer knows it.
func (t *ownership) lose(cause error, why string) {
	t.mu.Lock()
	after := t.doubt.mayLast(t.client.clock(), t.span())
	t.mu.Unlock()
	t.endLost(cause, why, after, true)
}

// endLost ends the ownership without a release, unless it is over already. after says that a
// command which is under way may yet lengthen the life of the key, or take it anew, so
// that it has to be released when its time should be over. alone says that nobody else is
// known to keep the key alive. Other participants of the owner and other readers may: then our
// part has to be removed, once.
func (t *ownership) endLost(cause error, why string, after, alone bool) bool {
	if !t.end(cause) {
		return false
	}
	t.client.reporter.log(noticeLost(why), t.lock.name, slog.String("owner", t.wire))
	t.observe(Event{Type: EventLost, Err: cause})
	t.endHold(0)
	t.mu.Lock()
	margin, span := driftMargin(t.lease.granted), t.span()
	t.mu.Unlock()
	if after || !alone {
		// Not before the key is gone by itself: the holder may need a moment to stop.
		t.undoLater(margin, span)
	}
	return true
}

// endHold lets the next local waiter try. told is how many subscribers received the message
// of the release: 0 if none was sent or nobody listens, -1 if it could not be published.
func (t *ownership) endHold(told int64) {
	t.queue.holdReleased(told, t.echo && told <= 0)
}

// leaveHold is endHold for a lock that others hold still.
func (t *ownership) leaveHold() { t.queue.holdLeft(t.echo) }

// end makes the ownership over, once, and ends everything that depends on it. The
// cause is nil after a release.
func (t *ownership) end(cause error) bool {
	t.mu.Lock()
	if !t.phase.begun() {
		t.mu.Unlock()
		return false
	}
	t.phase, t.cause = over, cause
	endings := t.holds.clear(cause)
	t.client.watchdog.drop(t)
	t.mu.Unlock()
	t.client.registry.remove(t)
	if cause == nil {
		cause = ErrNotHeld
	}
	endAll(endings, cause)
	return true
}
