package latchkey

import (
	"cmp"
	"sync"
	"sync/atomic"
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
	lock   primitive
	wire   string // the owner as it is in Redis
	number uint64 // of this ownership in this client

	turn      transport.FIFOMutex
	schedule  schedule   // the watchdog's
	onKey     placeOnKey // guarded by the mutex of the shard of the key
	rare      atomic.Pointer[rareOfOwnership]
	othersAsk bool // its last release has failed, so that others may ask the server; guarded as onKey

	mu      sync.Mutex // guards what follows, but isGuest
	phase   phase
	echo    bool // the message of our own release is to be overheard
	isGuest bool // another client made the owner
	lease   leaseTerm
	doubt   doubt
	holds   holdSet
	local   localTurn
	entry   *queueEntry
}

// rareOfOwnership is what few ownerships have. There may be many, of which the others have only a nil
// pointer to it.
type rareOfOwnership struct {
	protocol protocol                  // that knows more of this ownership than that of the lock, or nil; set when it is made
	group    atomic.Pointer[waitQueue] // the line for the lock of several of which it is a member, or nil

	// Guarded by ownership.mu.
	least *timeBound // for which the lock stays taken, or nil; set when it begins
	cause error      // why it was lost
	// sibling is the ownership of the same owner on the other side of the lock, if this one
	// was made beside it or it was made beside this one. One that reads has it from the start.
	sibling *ownership
}

// noneRare is what an ownership has that has nothing of it. Nothing in it ever changes.
var noneRare = &rareOfOwnership{}

// rarely is what few ownerships have, to be looked at.
func (o *ownership) rarely() *rareOfOwnership { return cmp.Or(o.rare.Load(), noneRare) }

// makeRare is rarely, to be changed.
func (o *ownership) makeRare() *rareOfOwnership {
	if o.rare.Load() == nil {
		o.rare.CompareAndSwap(nil, &rareOfOwnership{})
	}
	return o.rare.Load()
}

// protocol is that of the lock, or one that knows more of this ownership.
func (o *ownership) protocol() protocol {
	if p := o.rarely().protocol; p != nil {
		return p
	}
	return o.lock.spec.protocol
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
	return Owner{client: o.lock.client.id, number: o.number}.String()
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
	passes := o.lock.client.registry.live.add(o)
	o.lock.client.record.use(now.Mono, r.lease)
	o.stopWaiting()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase, o.doubt.queued = held, false
	o.lease = lease
	if r.atLeast > 0 {
		o.makeRare().least = newTimeBound(r.atLeast, now)
	}
	o.holds.begin(r)
	o.holds.first.observeFrom(acquired, r.parent)
	o.beginTurn(r, token, passes, now)
	o.planFrom(now)
}

// addHold makes a re-entry that the server has confirmed, or tells why the ownership, or the hold
// under which it was asked for, can no longer be entered.
func (o *ownership) addHold(r *request, under *holdState, a transport.Answer) (s *holdState, cause error) {
	o.lock.client.record.use(a.Sent.Mono, r.lease)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return nil, cmp.Or(o.rarely().cause, ErrNotHeld)
	}
	outer := o.holds.outermostFor(under)
	if outer == nil {
		return nil, ErrNotHeld
	}
	s = &holdState{ownership: o, fencing: outer.fencing, renew: r.renew}
	s.rare = &rareOfHold{within: outer, limit: newTimeBound(r.maxHold, a.Sent), parent: r.parent}
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

// hasBegun reports whether it has been held.
func (o *ownership) hasBegun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lease.granted > 0
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

// mayBeAcquired reports whether an acquisition that was not answered may be executed, now or late.
func (o *ownership) mayBeAcquired() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubt.acquisition()
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
func (o *ownership) valid() time.Duration { return o.lease.valid(o.lock.client.clock()) }

// span is the longest time for which the key may live. o.mu is held.
func (o *ownership) span() time.Duration { return o.doubt.span(o.lease.span()) }

// terms bound an acquisition or a release. The call has the turn of the ownership, for which
// the next renewal waits: while the ownership is held, that is a part of the lease at most. o.mu is held.
func (o *ownership) terms(waits bool) transport.Terms {
	on := transport.Terms{Patience: o.lock.client.sender.Patience, Waits: waits}
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
	o.lock.client.registry.remove(o)
	switch {
	case begun:
		o.undoLater(0, lease)
	case queued:
		o.undoLater(0, o.lock.client.options.StaleWaiterTimeout)
	}
	return begun
}
