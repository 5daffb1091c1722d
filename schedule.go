package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// verifyOnly is the lease of a renewal that only checks whether the owner holds the lock. It is shorter than any
// remaining lease, so the renewal changes nothing.
const verifyOnly = -time.Second

// Keys implements [renewal.Hold].
func (o *ownership) Keys() *keyspace.Keys { return o.lock.names }

// Batch implements [renewal.Hold].
func (o *ownership) Batch() (renew transport.Command, most int) {
	return o.lock.spec.renew, o.lock.spec.renewals
}

// SendMu implements [renewal.Hold].
func (o *ownership) SendMu() *transport.FIFOMutex { return &o.sendMu }

// Period implements [renewal.Hold].
func (o *ownership) Period() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lease.Period()
}

// Awaited implements [renewal.Hold]. Goroutines may be in line behind the ownership, or behind the RedLock of which it is
// a member.
func (o *ownership) Awaited() bool {
	line := o.redLine.Load()
	return o.links.HasLine() || line != nil && line.IsWaitedFor()
}

// EndIfOver implements [renewal.Hold].
func (o *ownership) EndIfOver() {
	if !o.endIfDue() {
		o.endLimited()
	}
}

// plan tells the watchdog when to renew and when to give up. o.mu is held.
func (o *ownership) plan() { o.planFrom(o.lock.client.Clock()) }

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
	w, verifyAt := o.lock.client.Watchdog, async.NoDeadline
	if o.lock.spec.lineRests() {
		verifyAt = w.VerifyAt(now.Mono)
	}
	w.Plan(o, renewal.Due{RenewAt: renewAt, Deadline: now.Mono + valid, VerifyAt: verifyAt})
}

// renews reports whether the lease is to be renewed and a renewal would extend it. o.mu is held.
func (o *ownership) renews() bool {
	return o.phase == held && (o.holds.renewing > 0 || o.lease.Wanted != nil) && !o.lease.AtLimit()
}

// NextLease implements [renewal.Hold].
func (o *ownership) NextLease() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.renews():
		o.doubt.Renewal = true
		return max(o.lease.Next(o.lock.client.Clock()), 0)
	case o.phase == held && o.lock.spec.lineRests():
		return verifyOnly
	}
	return 0
}

// RenewalPatience implements [renewal.Hold]. A verification wins no time, so it does not wait for longer than usual.
func (o *ownership) RenewalPatience(lease time.Duration) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lease == verifyOnly {
		return o.lease.Patience()
	}
	return o.lease.RenewalPatience(o.lock.client.Clock())
}

// RenewalCall implements [renewal.Hold].
func (o *ownership) RenewalCall(lease time.Duration) script.Call {
	return o.protocol().renewalCall(o, lease)
}

// RenewalCalls implements [renewal.Hold].
func (o *ownership) RenewalCalls(lease time.Duration) []script.Call {
	if each := o.lock.spec.renewEach; each != nil {
		return each(o, lease)
	}
	return nil
}

// Renewed notes that the server has renewed the lease or verified the hold. A result above 1 says that the lease ends
// earlier, in result - 2 ms: see lua/permit/renew.lua. A release that waits for this answer needs the lease too, for its
// own answer.
func (o *ownership) Renewed(sent lease.Stamp, lease time.Duration, result int64) {
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
	o.doubt.Renewal = false
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
	o.lock.client.Record.Use(sent.Mono, lease)
	o.observe(report.Renewed, nil, nil)
}

// Gone implements [renewal.Hold].
func (o *ownership) Gone() { o.lose(fault.ErrLost, "the key is gone or belongs to another owner") }

// RenewLater implements [renewal.Hold]. Only the deadline ends a hold that cannot be renewed.
func (o *ownership) RenewLater(err error) {
	o.mu.Lock()
	switch {
	case o.renews():
		now := o.lock.client.Clock()
		o.planAt(now, now.Mono+transport.Jitter(o.lease.RetryPause()))
	case o.phase == held:
		o.plan()
	}
	o.mu.Unlock()
	if err != nil {
		o.observe(report.RenewalFailed, nil, script.Returned(err))
	}
}
