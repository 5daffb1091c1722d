package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// schedule is the watchdog's part of an ownership, guarded by watchdog.mu.
type schedule struct {
	index    int           // in the watchdog's queue, or -1
	renewAt  time.Duration // on the monotonic clock
	deadline time.Duration // when the hold can no longer be relied on
	period   time.Duration // time between renewals
}

func newSchedule() schedule { return schedule{index: -1} }

// dueAt is part of [dueItem].
func (t *ownership) dueAt() time.Duration { return min(t.schedule.renewAt, t.schedule.deadline) }

// place is part of [dueItem].
func (t *ownership) place() *int { return &t.schedule.index }

// plan tells the watchdog when to renew and when to give up. t.mu is held.
func (t *ownership) plan() {
	now := t.client.clock()
	renewAt := never
	if t.phase == held && t.holds.renewing > 0 && !t.lease.atLimit() {
		renewAt = now.Mono + t.lease.untilRenewal(now)
	}
	t.planAt(now, renewAt)
}

// planAt is plan with the time of the next renewal. t.mu is held.
func (t *ownership) planAt(now transport.Stamp, renewAt time.Duration) {
	t.client.watchdog.plan(t, renewAt, now.Mono+t.lease.valid(now), t.lease.period())
}

// nextLease is the lease for a renewal that is about to be sent, 0 if there is
// nothing to renew.
func (t *ownership) nextLease() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held || t.holds.renewing == 0 {
		return 0
	}
	t.doubt.renewal = true
	return t.lease.next(t.client.clock())
}

// renewed takes note of a lease that the server has set again.
func (t *ownership) renewed(sent transport.Stamp, lease time.Duration) {
	t.mu.Lock()
	if t.phase != held {
		t.mu.Unlock()
		return
	}
	t.doubt.renewal = false
	t.lease.extend(sent, lease)
	t.plan()
	t.mu.Unlock()
	t.observe(Event{Type: EventRenewed})
}

// renewLater plans another renewal soon: only the deadline ends a hold that cannot
// be renewed.
func (t *ownership) renewLater() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == held {
		now := t.client.clock()
		t.planAt(now, now.Mono+transport.Jitter(t.lease.retryPause()))
	}
}
