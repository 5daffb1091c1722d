package ownership

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
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// verifyOnly is the lease of a renewal that only checks whether the owner holds the lock. It is
// shorter than any remaining lease, so the renewal changes nothing.
const verifyOnly = -time.Second

// watched is an ownership as the watchdog sees it, with the methods of [renewal.Hold].
type watched struct{ *Ownership }

// Keys implements [renewal.Hold].
func (w watched) Keys() *keyspace.Keys { return w.Names }

// Batch implements [renewal.Hold].
func (w watched) Batch() (renew transport.Command, most int) {
	return w.Spec.Renew, w.Spec.Renewals
}

// SendMutex implements [renewal.Hold].
func (w watched) SendMutex() *async.FIFOMutex { return &w.SendMu }

// Period implements [renewal.Hold].
func (w watched) Period() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Lease.Period()
}

// Awaited implements [renewal.Hold]. Goroutines may be in line behind the ownership, or behind the
// RedLock of which it is a member.
func (w watched) Awaited() bool {
	line := w.RedLine.Load()
	return w.Links.HasLine() || line != nil && line.IsWaitedFor()
}

// EndIfOver implements [renewal.Hold].
func (w watched) EndIfOver() {
	if w.EndIfDue() {
		return
	}
	now := w.Client.Clock()
	w.mu.Lock()
	past := w.Holds.PastLimit(now)
	w.mu.Unlock()
	for _, h := range past {
		w.limitReached(h)
	}
}

// plan tells the watchdog when to renew and when to give up. o.mu is held.
func (o *Ownership) plan() {
	now, renewAt := o.Client.Clock(), async.NoDeadline
	if o.renews() {
		renewAt = now.Mono + o.Lease.UntilRenewal(now)
	}
	o.planAt(now, renewAt)
}

// planAt is plan with the time of the next renewal. o.mu is held.
func (o *Ownership) planAt(now lease.Stamp, renewAt time.Duration) {
	valid := min(o.Lease.Valid(now), o.Holds.UntilLimit(now))
	w, verifyAt := o.Client.Watchdog, async.NoDeadline
	if o.Spec.lineRests() {
		verifyAt = w.VerifyAt(now.Mono)
	}
	w.Plan(watched{o}, renewal.Due{RenewAt: renewAt, Deadline: now.Mono + valid, VerifyAt: verifyAt})
}

// renews reports whether the lease is to be renewed and a renewal would extend it. o.mu is held.
func (o *Ownership) renews() bool {
	return o.Phase == Held && (o.Holds.Renews() || o.Lease.Wanted != nil) && !o.Lease.AtLimit()
}

// NextLease implements [renewal.Hold].
func (w watched) NextLease() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.renews():
		w.Doubt.Renewal = true
		return max(w.Lease.Next(w.Client.Clock()), 0)
	case w.Phase == Held && w.Spec.lineRests():
		return verifyOnly
	}
	return 0
}

// RenewalPatience implements [renewal.Hold]. A verification wins no time, so it does not wait for
// longer than usual.
func (w watched) RenewalPatience(lease time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lease == verifyOnly {
		return w.Lease.Patience()
	}
	return w.Lease.RenewalPatience(w.Client.Clock())
}

// RenewalCall implements [renewal.Hold].
func (w watched) RenewalCall(lease time.Duration) script.Call {
	return w.Protocol.RenewalCall(w.Ownership, lease)
}

// RenewalCalls implements [renewal.Hold].
func (w watched) RenewalCalls(lease time.Duration) []script.Call {
	if each := w.Spec.RenewEach; each != nil {
		return each(w.Ownership, lease)
	}
	return nil
}

// Renewed implements [renewal.Hold]: the server has renewed the lease or verified the hold. A
// result above 1 says that the lease ends earlier, in result - 2 ms: see lua/permit/renew.lua. A
// release that waits for this answer needs the lease too, for its own answer.
func (w watched) Renewed(sent lease.Stamp, lease time.Duration, result int64) {
	w.mu.Lock()
	if !w.Phase.begun() {
		w.mu.Unlock()
		return
	}
	if lease == verifyOnly {
		w.plan()
		w.mu.Unlock()
		return
	}
	w.Doubt.Renewal = false
	w.Lease.Extend(sent, lease)
	w.Lease.Settled(sent, lease)
	if result > 1 {
		w.Lease.EndIn(sent, script.FromMillis(result-2))
	}
	w.plan()
	if w.Phase == Held {
		w.Holds.Watch()
	}
	w.mu.Unlock()
	w.Client.Record.Use(sent.Mono, lease)
	w.Observe(report.Renewed, nil, nil)
}

// Gone implements [renewal.Hold].
func (w watched) Gone() {
	w.Lose(fault.ErrLost, "the key is gone or belongs to another owner")
}

// RenewLater implements [renewal.Hold]. Only the deadline ends a hold that cannot be renewed.
func (w watched) RenewLater(err error) {
	w.mu.Lock()
	switch {
	case w.renews():
		now := w.Client.Clock()
		w.planAt(now, now.Mono+retry.Jitter(w.Lease.RetryPause()))
	case w.Phase == Held:
		w.plan()
	}
	w.mu.Unlock()
	if err != nil {
		w.Observe(report.RenewalFailed, nil, script.Returned(err))
	}
}
