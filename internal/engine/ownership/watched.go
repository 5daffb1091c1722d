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

// watched is an ownership as the watchdog sees it: the same value under another name, with the
// methods of [renewal.Hold].
type watched Ownership

// Keys implements [renewal.Hold].
func (w *watched) Keys() *keyspace.Keys { return w.Names }

// Batch implements [renewal.Hold].
func (w *watched) Batch() (renew transport.Command, most int) {
	o := (*Ownership)(w)
	return o.Spec.Renew, o.Spec.Renewals
}

// SendMutex implements [renewal.Hold].
func (w *watched) SendMutex() *async.FIFOMutex { return &(*Ownership)(w).SendMu }

// Period implements [renewal.Hold].
func (w *watched) Period() time.Duration {
	o := (*Ownership)(w)
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Lease.Period()
}

// Awaited implements [renewal.Hold]. Goroutines may be in line behind the ownership, or behind the
// RedLock of which it is a member.
func (w *watched) Awaited() bool {
	o := (*Ownership)(w)
	line := o.RedLine.Load()
	return o.Links.HasLine() || line != nil && line.IsWaitedFor()
}

// EndIfOver implements [renewal.Hold].
func (w *watched) EndIfOver() {
	o := (*Ownership)(w)
	if o.EndIfDue() {
		return
	}
	now := o.Client.Clock()
	o.mu.Lock()
	past := o.Holds.PastLimit(now)
	o.mu.Unlock()
	for _, h := range past {
		o.limitReached(h)
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
	w.Plan((*watched)(o), renewal.Due{RenewAt: renewAt, Deadline: now.Mono + valid, VerifyAt: verifyAt})
}

// renews reports whether the lease is to be renewed and a renewal would extend it. o.mu is held.
func (o *Ownership) renews() bool {
	return o.Phase == Held && (o.Holds.Renews() || o.Lease.Wanted != nil) && !o.Lease.AtLimit()
}

// NextLease implements [renewal.Hold].
func (w *watched) NextLease() time.Duration {
	o := (*Ownership)(w)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.renews():
		o.Doubt.Renewal = true
		return max(o.Lease.Next(o.Client.Clock()), 0)
	case o.Phase == Held && o.Spec.lineRests():
		return verifyOnly
	}
	return 0
}

// RenewalPatience implements [renewal.Hold]. A verification wins no time, so it does not wait for
// longer than usual.
func (w *watched) RenewalPatience(lease time.Duration) time.Duration {
	o := (*Ownership)(w)
	o.mu.Lock()
	defer o.mu.Unlock()
	if lease == verifyOnly {
		return o.Lease.Patience()
	}
	return o.Lease.RenewalPatience(o.Client.Clock())
}

// RenewalCall implements [renewal.Hold].
func (w *watched) RenewalCall(lease time.Duration) script.Call {
	o := (*Ownership)(w)
	return o.Protocol.RenewalCall(o, lease)
}

// RenewalCalls implements [renewal.Hold].
func (w *watched) RenewalCalls(lease time.Duration) []script.Call {
	o := (*Ownership)(w)
	if each := o.Spec.RenewEach; each != nil {
		return each(o, lease)
	}
	return nil
}

// Renewed implements [renewal.Hold]: the server has renewed the lease or verified the hold. A
// result above 1 says that the lease ends earlier, in result - 2 ms: see lua/permit/renew.lua. A
// release that waits for this answer needs the lease too, for its own answer.
func (w *watched) Renewed(sent lease.Stamp, lease time.Duration, result int64) {
	o := (*Ownership)(w)
	o.mu.Lock()
	if !o.Phase.begun() {
		o.mu.Unlock()
		return
	}
	if lease == verifyOnly {
		o.plan()
		o.mu.Unlock()
		return
	}
	o.Doubt.Renewal = false
	o.Lease.Extend(sent, lease)
	o.Lease.Settled(sent, lease)
	if result > 1 {
		o.Lease.EndIn(sent, script.FromMillis(result-2))
	}
	o.plan()
	if o.Phase == Held {
		o.Holds.Watch()
	}
	o.mu.Unlock()
	o.Client.Record.Use(sent.Mono, lease)
	o.Observe(report.Renewed, nil, nil)
}

// Gone implements [renewal.Hold].
func (w *watched) Gone() {
	(*Ownership)(w).Lose(fault.ErrLost, "the key is gone or belongs to another owner")
}

// RenewLater implements [renewal.Hold]. Only the deadline ends a hold that cannot be renewed.
func (w *watched) RenewLater(err error) {
	o := (*Ownership)(w)
	o.mu.Lock()
	switch {
	case o.renews():
		now := o.Client.Clock()
		o.planAt(now, now.Mono+retry.Jitter(o.Lease.RetryPause()))
	case o.Phase == Held:
		o.plan()
	}
	o.mu.Unlock()
	if err != nil {
		o.Observe(report.RenewalFailed, nil, script.Returned(err))
	}
}
