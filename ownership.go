package latchkey

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// ownership is the time in which one owner has one lock, from the outermost acquisition to the last release,
// including all re-entries. Holds are handles on it.
//
// Every request for an ownership (acquire, re-enter, renew, release, undo) is sent under its sendMu, one after
// the other.
type ownership struct {
	renewal.Item // the watchdog's

	lock    *primitive
	wire    string   // the owner as it is in Redis
	number  uint64   // of this ownership in this client
	special protocol // one that knows more of this ownership than the lock's, or nil; set when it is made

	sendMu  transport.FIFOMutex
	redLine atomic.Pointer[line.FIFO] // the line for the RedLock of which it is a member, or nil
	links   line.Links                // to those that want the lock

	isGuest bool // another client made the owner; set when it is made

	mu    sync.Mutex // guards the fields below
	phase phase
	echo  bool // the message of this client's own release is to be ignored
	lease lease.Term
	doubt undo.Doubt
	holds holdSet
	local localTurn
	entry *queueEntry

	keptUntil *lease.Bound // until when the lock stays taken, or nil; set when it begins
	// sibling is the ownership of the same owner on the other side of the lock, if one of the two was made
	// while the other existed, or nil. An ownership that reads has it from the start.
	sibling *ownership
}

// protocol returns the protocol of the lock, or one that knows more of this ownership.
func (o *ownership) protocol() protocol {
	if o.special != nil {
		return o.special
	}
	return o.lock.spec.protocol
}

// Table implements [line.Held].
func (o *ownership) Table() *line.Table { return o.lock.client.Lines }

// LineKey implements [line.Held].
func (o *ownership) LineKey() line.Key { return o.lock.lineKey() }

// PassedIn implements [line.Held].
func (o *ownership) PassedIn() line.Side {
	if !o.lock.spec.passes {
		return line.Only
	}
	return o.lock.spec.line
}

// KeepsOut implements [line.Held]. Others may have permits too.
func (o *ownership) KeepsOut() bool { return !o.lock.spec.permit }

// phase is the state of an ownership:
//
//	           granted         the last release begins            it is answered
//	acquiring ─────────▶ held ─────────────────────────▶ releasing ─────────▶ over
//	    │                  │                                 │                 ▲
//	    │ refused, late,   │ denied, lease over,             │ lease over,     │
//	    │ context ended    │ limit reached, Close            │ gone            │
//	    └──────────────────┴─────────────────────────────────┴─────────────────┘
//
// Re-entries, partial releases, renewals and extensions are sent while it is held, and do not change the phase.
// When it is releasing or over, only releases are sent.
type phase uint8

const (
	acquiring phase = iota
	held
	releasing
	over
)

// begun reports whether the ownership has been granted and is not over.
func (p phase) begun() bool { return p == held || p == releasing }

// guestID returns the name of this client's part if another client made the owner, else "".
func (o *ownership) guestID() string {
	if !o.isGuest {
		return ""
	}
	return identity.New(o.lock.client.ID, o.number).String()
}

// owner returns the owner of the ownership.
func (o *ownership) owner() identity.Owner { return identity.Of(o.wire) }

// begin makes an ownership live after the server has granted it. The lease counts from just before the request
// was sent.
func (o *ownership) begin(r *request.Request, a transport.Answer, now lease.Stamp) {
	o.beginWith(r, lease.NewTerm(a.Sent, r.Lease, r.RenewLease, r.MaxHold), a.Sent, now, script.Token(a))
}

// beginWith makes an ownership live with what the server granted. The program sees acquired as the time of the
// acquisition.
func (o *ownership) beginWith(r *request.Request, term lease.Term, acquired, now lease.Stamp, token int64) {
	passes := o.links.HoldBegins()
	o.lock.client.Record.Use(now.Mono, r.Lease)
	o.stopWaiting()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase, o.doubt.Queued = held, false
	o.lease = term
	if o.lock.spec.permit && token > 0 { // it is not a token, but the ms after which the semaphore ends
		o.lease.EndIn(term.Sent, script.FromMillis(token))
		token = 0
	}
	o.keptUntil = lease.NewBound(r.AtLeast, now)
	o.holds.begin(r)
	o.holds.first.acquired, o.holds.first.parent = acquired, r.Parent
	o.beginTurn(r, token, passes, now)
	o.planFrom(now)
}

// fit fits a request that re-enters the ownership to the limits of the outermost hold, and returns the count with
// the new hold.
func (o *ownership) fit(r *request.Request) (count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Renew {
		r.Lease = min(r.Lease, r.RenewLease) // the lease of AtLeast belongs to the outermost hold
	}
	if r.OfClient > 0 && o.lease.Limit != nil {
		r.MaxHold = 0 // the outermost hold has that limit, or one of its own
	}
	r.Lease = min(r.Lease, max(o.lease.Limit.Left(o.lock.client.Clock()), lease.Shortest))
	return o.holds.count + 1
}

// addHold makes a re-entry that the server has confirmed. If the ownership, or the hold that the caller
// re-enters, can no longer be entered, it returns the cause.
func (o *ownership) addHold(r *request.Request, under *holdState, a transport.Answer) (s *holdState, cause error) {
	o.lock.client.Record.Use(a.Sent.Mono, r.Lease)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return nil, cmp.Or(o.holds.cause, fault.ErrNotHeld)
	}
	outer := o.holds.outermostFor(under)
	if outer == nil {
		return nil, fault.ErrNotHeld
	}
	s = &holdState{ownership: o, fencing: outer.fencing, renew: r.Renew,
		within: outer, limit: lease.NewBound(r.MaxHold, a.Sent), parent: r.Parent}
	o.holds.add(s)
	o.lease.Extend(a.Sent, r.Lease)
	o.plan()
	return s, nil
}

// noteDoubt records whether the answer to a request leaves it in doubt that the ownership, which may be nil, is acquired.
func (o *ownership) noteDoubt(a transport.Answer) {
	if o == nil || !a.Doubt {
		return
	}
	o.mu.Lock()
	o.doubt.AcquisitionInDoubt(a.DoubtAt, a.DoubtGeneration)
	o.mu.Unlock()
}

// markUnwanted marks what the server has granted for undo.
func (o *ownership) markUnwanted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubt.Unwanted = true
}

// isNested reports whether the ownership reads for an owner that writes, or did.
func (o *ownership) isNested() bool { return o.lock.spec.side == keyspace.KindRead && o.sibling != nil }

// first returns the hold that the ownership began with.
func (o *ownership) first() *holdState { return &o.holds.first }

// currentPhase returns the phase, for callers that do not hold o.mu.
func (o *ownership) currentPhase() phase {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase
}

// hasBegun reports whether the ownership has ever been held.
func (o *ownership) hasBegun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lease.Granted > 0
}

// live reports whether the ownership can be entered again.
func (o *ownership) live() bool { return o.currentPhase() == held }

// markQueued records that the server has the ownership in a queue.
func (o *ownership) markQueued() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubt.Queued = true
}

// MayWait reports whether the server may have the ownership in a queue.
func (o *ownership) mayWait() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubt.MayWait()
}

// mayBeAcquired reports whether an unanswered acquisition may have run, or may still run.
func (o *ownership) mayBeAcquired() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubt.Acquisition()
}

// waitingArg returns MayWait as an argument for scripts.
func (o *ownership) waitingArg() string {
	if o.mayWait() {
		return "1"
	}
	return "0"
}

// usable reports whether an acquisition by the same owner can wait for, or enter, this ownership.
func (o *ownership) usable() bool {
	now := o.currentPhase()
	return now == acquiring || now == held
}

// valid returns for how long the holds can be relied on without a reply from the server. o.mu is held.
func (o *ownership) valid() time.Duration { return o.lease.Valid(o.lock.client.Clock()) }

// left is valid for callers that do not hold o.mu.
func (o *ownership) left() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.valid()
}

// note returns the note of the ownership, or "".
func (o *ownership) note() string { return o.lock.client.Record.NoteOf(o.owner()) }

// span returns the longest time for which the key may live. o.mu is held.
func (o *ownership) span() time.Duration { return o.doubt.Span(o.lease.Span()) }

// terms returns the bounds of an acquisition or a release. The call has sendMu of the ownership, and the next
// renewal waits for it. So while the ownership is held, the bound is at most a part of the lease. o.mu is held.
func (o *ownership) terms(waits bool) transport.Terms {
	on := transport.Terms{Patience: o.lock.client.Sender.Patience, Waits: waits}
	if o.phase == held {
		on.Patience = min(on.Patience, max(o.lease.Patience(), transport.FirstPause))
	}
	return on
}

// endUnheld ends an ownership that the server does not know as a holder, and that has not begun. It reports whether that
// was so.
func (o *ownership) endUnheld() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != acquiring || o.doubt.MayBeHeld() {
		return false
	}
	o.phase = over
	return true
}

// abandon ends an ownership that has not begun, and undoes what the server may have granted, with that lease.
// It reports whether the server may have granted anything.
func (o *ownership) abandon(lease time.Duration) (begun bool) {
	o.stopWaiting()
	o.mu.Lock()
	o.phase = over
	o.doubt.Unwanted = o.doubt.Unwanted || o.entry.grant != nil
	begun = o.doubt.MayBeHeld()
	queued := o.doubt.Queued
	o.mu.Unlock()
	o.lock.client.registry.remove(o)
	switch {
	case begun:
		o.undoLater(0, lease)
	case queued:
		o.undoLater(0, o.lock.client.Config.StaleWaiterTimeout)
	}
	return begun
}
