package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// schedule is what the watchdog keeps for an ownership. watchdog.mu guards it.
type schedule struct {
	dueTimes

	index int32 // its index in the watchdog's queue
}

// dueTimes says when an ownership is next due, on the monotonic clock.
type dueTimes struct {
	renewAt  time.Duration
	deadline time.Duration // when a hold can no longer be relied on
	verifyAt time.Duration // when the hold is to be verified if goroutines of this client wait for it
}

func newSchedule() schedule { return schedule{index: async.NotInHeap} }

// DueAt implements [async.Item].
func (o *ownership) DueAt() time.Duration { return min(o.schedule.renewAt, o.schedule.deadline) }

// HeapIndex implements [async.Item].
func (o *ownership) HeapIndex() *int32 { return &o.schedule.index }

// plan tells the watchdog when to renew and when to give up. o.mu is held.
func (o *ownership) plan() { o.planFrom(o.lock.client.clock()) }

// planFrom is plan with the current time. o.mu is held.
func (o *ownership) planFrom(now lease.Stamp) {
	renewAt := async.NoDeadline
	if o.renews() {
		renewAt = now.Mono + o.lease.UntilRenewal(now)
	}
	o.planAt(now, renewAt)
}

// planAt is plan with the time of the next renewal. o.mu is held.
func (o *ownership) planAt(now lease.Stamp, renewAt time.Duration) {
	valid := min(o.lease.Valid(now), o.holds.untilLimit(now))
	verifyAt := async.NoDeadline
	if o.lock.spec.lineRests() {
		verifyAt = now.Mono + pausesUnheard*o.lock.client.verifyPause()
	}
	o.lock.client.watchdog.plan(o, dueTimes{renewAt, now.Mono + valid, verifyAt})
}

// renews reports whether the lease is to be renewed and a renewal would extend it. o.mu is held.
func (o *ownership) renews() bool {
	return o.phase == held && (o.holds.renewing > 0 || o.lease.Wanted != nil) && !o.lease.AtLimit()
}

// nextLease returns the lease for a renewal that is about to be sent, or 0 if there is nothing to
// renew.
func (o *ownership) nextLease() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.renews():
		o.doubt.renewal = true
		return max(o.lease.Next(o.lock.client.clock()), 0)
	case o.phase == held && o.lock.spec.lineRests():
		return verifyOnly
	}
	return 0
}

// renewed notes that the server has renewed the lease or verified the hold. A result above 1 says that the lease ends
// earlier, in result - 2 ms: see lua/permit/renew.lua. A release that waits for this answer needs the lease too, for its
// own answer.
func (o *ownership) renewed(sent lease.Stamp, lease time.Duration, result int64) {
	o.mu.Lock()
	if !o.phase.begun() {
		o.mu.Unlock()
		return
	}
	if lease == verifyOnly {
		o.plan()
		o.mu.Unlock()
		return
	}
	o.doubt.renewal = false
	o.lease.Extend(sent, lease)
	o.lease.Settled(sent, lease)
	if result > 1 {
		o.lease.EndIn(sent, script.FromMillis(result-2))
	}
	o.plan()
	if o.phase == held {
		o.watchHandles()
	}
	o.mu.Unlock()
	o.lock.client.record.use(sent.Mono, lease)
	o.observe(report.Renewed, nil, nil)
}

// renewLater plans another renewal soon, because only the deadline ends a hold that cannot be
// renewed.
func (o *ownership) renewLater() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.renews():
		now := o.lock.client.clock()
		o.planAt(now, now.Mono+transport.Jitter(o.lease.RetryPause()))
	case o.phase == held:
		o.plan()
	}
}
