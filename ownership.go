package latchkey

import (
	"cmp"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// ownership is the time in which one owner has one lock, from the outermost
// acquisition to the last release, with all its re-entries. Holds are handles on
// it.
//
// Whatever is sent to the server for an ownership (acquire, re-enter, renew, release,
// undo) is sent under its turn, one after the other.
type ownership struct {
	client   *Client
	lock     *primitive
	wire     string   // the owner as it stands in Redis
	number   uint64   // of this ownership in this client
	protocol protocol // that of the lock, or one that knows more of this ownership

	turn     transport.FIFOMutex
	schedule schedule // the watchdog's

	linesBehind

	least   *leastTime // for which the lock stays taken, or nil; set when it begins
	isGuest bool       // another client made the owner

	mu    sync.Mutex // guards what follows
	phase phase
	echo  bool  // the message of our own release is to be overheard
	cause error // why it was lost
	lease leaseTerm
	doubt doubt
	holds holdSet
	local localTurn
	entry *queueEntry
	// sibling is the ownership of the same owner on the other side of the lock, if this one
	// was made beside it or it was made beside this one. One that reads has it from the start.
	sibling *ownership
}

// phase is what an ownership is in the middle of:
//
//	           granted         the last release begins            it is answered
//	acquiring ─────────▶ held ─────────────────────────▶ releasing ─────────▶ over
//	    │                  │                                 │                 ▲
//	    │ refused, late,   │ denied, lease over,             │ lease over,     │
//	    │ context ended    │ limit reached, Close            │ gone            │
//	    └──────────────────┴─────────────────────────────────┴─────────────────┘
//
// Re-entries, partial releases, renewals and extensions are sent while it is held, and leave
// it so. Nothing but releases is sent when it is releasing or over.
type phase uint8

const (
	acquiring phase = iota
	held
	releasing
	over
)

// begun reports whether the ownership has been granted and is not over.
func (p phase) begun() bool { return p == held || p == releasing }

// guestID is the name of our part if another client made the owner, else "".
func (o *ownership) guestID() string {
	if !o.isGuest {
		return ""
	}
	return Owner{client: o.client.id, number: o.number}.String()
}

// owner is whose the ownership is.
func (o *ownership) owner() Owner { return ownerOf(o.wire) }

// begin makes an ownership live after the server has granted it. The lease counts
// from before the request was sent.
func (o *ownership) begin(r *request, a transport.Answer, now transport.Stamp) {
	o.beginWith(r, newLeaseTerm(a.Sent, r.lease, r.renewLease, r.maxHold), a.Sent, now, tokenOf(a))
}

// beginWith makes an ownership live with what it has been granted. It was acquired then, for the
// program.
func (o *ownership) beginWith(r *request, lease leaseTerm, acquired, now transport.Stamp, token int64) {
	l := onlyLine
	if o.lock.spec.passes {
		l = o.lock.spec.line
	}
	var passes int
	o.queue, passes = o.client.waitQueues.holdBegins(o.lock.key, l)
	o.client.registry.add(o)
	o.client.record.use(now.Mono, r.lease)
	o.stopWaiting()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase, o.doubt.queued = held, false
	o.lease, o.least = lease, newLeastTime(r.atLeast, now)
	o.holds.begin(r, acquired)
	o.beginTurn(r, token, passes, now)
	o.planFrom(now)
}

// addHold makes a re-entry that the server has confirmed, or tells why the ownership, or the hold
// under which it was asked for, can no longer be entered.
func (o *ownership) addHold(r *request, under *holdState, a transport.Answer) (s *holdState, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return nil, cmp.Or(o.cause, ErrNotHeld)
	}
	outer := o.holds.outermostFor(under)
	if outer == nil {
		return nil, ErrNotHeld
	}
	s = &holdState{ownership: o, within: outer, fencing: outer.fencing, renew: r.renew, limit: newHoldLimit(r.maxHold, a.Sent), parent: r.parent}
	o.holds.add(s)
	o.lease.extend(a.Sent, r.lease)
	o.plan()
	o.limitHold(s)
	return s, nil
}

// noteDoubt takes note of the answer to an acquisition.
func (o *ownership) noteDoubt(a transport.Answer) {
	if !a.Doubt {
		return
	}
	o.mu.Lock()
	o.doubt.acquisitionInDoubt(a.DoubtAt, a.DoubtGeneration)
	o.mu.Unlock()
}

// currentPhase is the phase at this moment, for those who do not hold o.mu.
func (o *ownership) currentPhase() phase {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase
}

// live reports whether the ownership can be entered again.
func (o *ownership) live() bool { return o.currentPhase() == held }

// markQueued remembers that the server has the ownership among those who wait.
func (o *ownership) markQueued() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubt.queued = true
}

// mayWait reports whether the server may have the ownership in a queue.
func (o *ownership) mayWait() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubt.mayWait()
}

// waitingArg is mayWait, as scripts are told.
func (o *ownership) waitingArg() string {
	if o.mayWait() {
		return "1"
	}
	return "0"
}

// usable reports whether an acquisition by the same owner can wait for, or enter,
// this ownership.
func (o *ownership) usable() bool {
	now := o.currentPhase()
	return now == acquiring || now == held
}

// valid is for how long the holds can be relied on, without asking anybody. o.mu is held.
func (o *ownership) valid() time.Duration { return o.lease.valid(o.client.clock()) }

// span is the longest time for which the key may live. o.mu is held.
func (o *ownership) span() time.Duration { return o.doubt.span(o.lease.span()) }

// terms bound an acquisition or a release. The call has the turn of the ownership, for which
// the next renewal waits: while the ownership is held, that is a part of the lease at most. o.mu is held.
func (o *ownership) terms(waits bool) transport.Terms {
	on := transport.Terms{Patience: o.client.sender.Patience, Waits: waits}
	if o.phase == held {
		on.Patience = min(on.Patience, max(o.lease.patience(), transport.FirstPause))
	}
	return on
}

// abandon ends an ownership that has not begun, and has undone what may have begun for the
// server, which may have given it that lease. It reports whether anything may.
func (o *ownership) abandon(lease time.Duration) (begun bool) {
	o.stopWaiting()
	o.mu.Lock()
	o.phase = over
	o.doubt.unwanted = o.doubt.unwanted || o.entry.grant != nil
	begun = o.doubt.mayBeHeld()
	queued := o.doubt.queued
	o.mu.Unlock()
	o.client.registry.remove(o)
	switch {
	case begun:
		o.undoLater(0, lease)
	case queued:
		o.undoLater(0, o.client.options.StaleWaiterTimeout)
	}
	return begun
}
