package latchkey

import "time"

// valid returns for how long the hold can be relied on, without asking anybody.
// t.mu is held.
func (t *ownership) valid() time.Duration {
	now := t.client.clock()
	left := t.granted - driftMargin(t.granted) - now.since(t.sent)
	if t.limit > 0 {
		left = min(left, t.limit-driftMargin(t.limit)-now.since(t.start))
	}
	return left
}

// plan tells the watchdog when to renew and when to give up. t.mu is held.
func (t *ownership) plan() {
	now := t.client.clock()
	renewAt := never
	if t.phase == held && t.renewing > 0 && !t.atLimit() {
		// By the clock that says more, as the end of the lease is.
		renewAt = now.mono + renewPeriod(t.lease) - now.since(t.renewedAt)
	}
	t.client.watchdog.plan(t, renewAt, now.mono+t.valid(), t.lease/3)
}

// atLimit reports whether the key already ends at the limit, so that a renewal
// could add nothing. t.mu is held.
func (t *ownership) atLimit() bool {
	return t.limit > 0 && t.sent.since(t.start)+t.granted >= t.limit
}

// nextLease is the lease for a renewal that is about to be sent, 0 if there is
// nothing to renew. It never passes the limit.
func (t *ownership) nextLease() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held || t.renewing == 0 {
		return 0
	}
	t.unsettled = true
	if t.limit > 0 {
		return min(t.lease, t.limit-t.client.clock().since(t.start))
	}
	return t.lease
}

// renewed takes note of a lease that the server has set again.
func (t *ownership) renewed(sent stamp, lease time.Duration) {
	t.mu.Lock()
	if t.phase != held {
		t.mu.Unlock()
		return
	}
	t.unsettled = false
	t.extend(sent, lease)
	t.plan()
	t.mu.Unlock()
	t.observe(Event{Type: EventRenewed})
}

// extend moves the end of the lease, never to an earlier time. t.mu is held.
func (t *ownership) extend(sent stamp, lease time.Duration) {
	if lease >= t.lease {
		t.renewedAt = sent // a shorter one is no reason to renew later
	}
	if sent.since(t.sent)+lease > t.granted {
		t.sent, t.granted = sent, lease
	}
}

// renewLater plans another renewal soon: only the deadline ends a hold that cannot
// be renewed.
func (t *ownership) renewLater() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held {
		return
	}
	now := t.client.clock().mono
	pause := min(max(t.lease/20, 5*time.Millisecond), time.Second)
	t.client.watchdog.plan(t, now+jitter(pause), now+t.valid(), t.lease/3)
}

// span is the longest time for which the key may live. t.mu is held.
func (t *ownership) span() time.Duration { return max(t.lease, t.granted, t.longest) }

// terms bound an acquisition or a release. The call has the turn of the ownership, for which
// the next renewal waits: while the ownership is held, that is a sixth of the lease at most.
func (t *ownership) terms(waits bool) terms {
	on := terms{t.client.sender.patience, waits}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == held {
		on.patience = min(on.patience, max(t.lease/6, firstPause))
	}
	return on
}
