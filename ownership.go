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
	client        *Client
	lock          *primitive
	owner         Owner
	wire          string   // the owner as it stands in Redis
	number        uint64   // of this ownership in this client
	participantID string   // name of our part if another client made the owner, else ""
	protocol      protocol // that of the lock, or one that knows more of this ownership

	turn     transport.FIFOMutex
	schedule schedule // the watchdog's

	// Set when it begins.
	token int64
	queue *waitQueue // which is told of it

	mu    sync.Mutex // guards what follows
	phase phase
	cause error // why it was lost
	lease leaseTerm
	doubt doubt
	holds holdSet
	echo  bool // the message of our own release is to be overheard
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
type phase int

const (
	acquiring phase = iota
	held
	releasing
	over
)

// begun reports whether the ownership has been granted and is not over.
func (p phase) begun() bool { return p == held || p == releasing }

// begin makes an ownership live after the server has granted it. The lease counts
// from before the request was sent.
func (t *ownership) begin(r *request, a transport.Answer) {
	t.queue = t.client.waitQueues.use(t.lock.key)
	t.queue.holdBegan()
	t.client.registry.add(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase, t.doubt.queued = held, false
	t.lease = newLeaseTerm(a.Sent, r.lease, r.renewLease, r.maxHold)
	if t.lock.spec.fenced {
		t.token = tokenOf(a)
	}
	t.holds.begin(r.renew)
	t.plan()
}

// addHold makes a re-entry that the server has confirmed, or tells why the ownership can
// no longer be entered.
func (t *ownership) addHold(r *request, a transport.Answer) (s *holdState, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held {
		return nil, cmp.Or(t.cause, ErrNotHeld)
	}
	s = &holdState{ownership: t, renew: r.renew, limit: holdLimit{r.maxHold, a.Sent}}
	t.holds.add(s)
	t.lease.extend(a.Sent, r.lease)
	t.plan()
	t.limitHold(s)
	return s, nil
}

// noteDoubt takes note of the answer to an acquisition.
func (t *ownership) noteDoubt(a transport.Answer) {
	if !a.Doubt {
		return
	}
	t.mu.Lock()
	t.doubt.acquisitionInDoubt(a.DoubtAt, a.DoubtGeneration)
	t.mu.Unlock()
}

// live reports whether the ownership can be entered again.
func (t *ownership) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == held
}

// isPending reports whether the ownership has not begun.
func (t *ownership) isPending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == acquiring
}

// markQueued remembers that the server has the ownership among those who wait.
func (t *ownership) markQueued() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubt.queued = true
}

// mayWait reports whether the server may have the ownership in a queue.
func (t *ownership) mayWait() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.doubt.mayWait()
}

// usable reports whether an acquisition by the same owner can wait for, or enter,
// this ownership.
func (t *ownership) usable() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == acquiring || t.phase == held
}

// valid is for how long the holds can be relied on, without asking anybody. t.mu is held.
func (t *ownership) valid() time.Duration { return t.lease.valid(t.client.clock()) }

// span is the longest time for which the key may live. t.mu is held.
func (t *ownership) span() time.Duration { return t.doubt.span(t.lease.span()) }

// terms bound an acquisition or a release. The call has the turn of the ownership, for which
// the next renewal waits: while the ownership is held, that is a part of the lease at most.
func (t *ownership) terms(waits bool) transport.Terms {
	on := transport.Terms{Patience: t.client.sender.Patience, Waits: waits}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == held {
		on.Patience = min(on.Patience, max(t.lease.patience(), transport.FirstPause))
	}
	return on
}

// observe has the observer, if there is one, told what happened to the ownership.
func (t *ownership) observe(e Event) {
	if t.client.options.Observer == nil {
		return
	}
	e.Kind, e.Name, e.Owner = t.lock.spec.kind, t.lock.name, t.owner
	if e.Type == EventLost || e.Type == EventReleased {
		t.mu.Lock()
		e.Held = t.lease.held(t.client.clock())
		t.mu.Unlock()
	}
	t.client.reporter.observe(e)
}

// abandon ends an ownership that has not begun, and has undone what may have begun for the
// server, which may have given it that lease. It reports whether anything may.
func (t *ownership) abandon(lease time.Duration) (begun bool) {
	t.mu.Lock()
	t.phase = over
	begun = t.doubt.mayBeHeld()
	queued := t.doubt.queued
	t.mu.Unlock()
	t.client.registry.remove(t)
	switch {
	case begun:
		t.undoLater(0, lease)
	case queued:
		t.undoLater(0, t.client.options.StaleWaiterTimeout)
	}
	return begun
}
