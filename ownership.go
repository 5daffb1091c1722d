package latchkey

import (
	"cmp"
	"sync"
	"time"
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
	wire          string // the owner as it stands in Redis
	number        uint64 // of this ownership in this client
	participantID string // name of our part if another client made the owner, else ""
	turn          fifoMutex
	waits         bool        // the acquisition waits: see readProtocol, writeProtocol
	fairWaiter    *fairWaiter // in the queue of a fair lock, while it waits
	since         stamp       // when it came to the front of its line, if it waits

	// Of a permit that was asked for together with others: those others, until they
	// have begun with it or are given up.
	batch     []*ownership
	leader    string // the wire name of the one that asks
	permanent bool   // it was asked for without an end of its lease

	// Of an ownership that reads for an owner that writes: what tells it from others, and
	// the ownership that writes.
	nestedNumber string
	writer       *ownership

	schedule schedule // the watchdog's

	mu     sync.Mutex
	phase  phase
	cause  error
	lease  leaseTerm
	doubt  doubt
	holds  holdSet
	token  int64
	queue  *waitQueue
	echo   bool       // our own message of the release is to be overheard
	nested *ownership // reads for the same owner
}

type phase int

const (
	pending phase = iota // being acquired
	held
	leaving // the last release has begun: no renewal and no re-entry any more
	over
)

// begin makes an ownership live after the server has granted it. The lease counts
// from before the request was sent.
func (t *ownership) begin(r *request, a answer) {
	t.queue = t.client.waitQueues.use(t.lock.key)
	t.queue.holdBegan()
	t.client.registry.add(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase, t.doubt.queued = held, false
	t.lease = newLeaseTerm(a.sent, r.lease, r.renewLease, r.maxHold)
	if t.lock.spec.fenced {
		t.token = tokenOf(a)
	}
	t.holds.begin(r.renew)
	t.plan()
	for _, other := range t.batch {
		other.begin(r, a)
	}
}

// addHold makes a re-entry that the server has confirmed, or tells why the ownership can
// no longer be entered.
func (t *ownership) addHold(r *request, a answer) (g *holdState, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held {
		return nil, cmp.Or(t.cause, ErrNotHeld)
	}
	g = &holdState{ownership: t, renew: r.renew, limit: holdLimit{r.maxHold, a.sent}}
	t.holds.add(g)
	t.lease.extend(a.sent, r.lease)
	t.plan()
	t.limitHold(g)
	return g, nil
}

// noteDoubt takes note of the answer to an acquisition.
func (t *ownership) noteDoubt(a answer) {
	if !a.doubt {
		return
	}
	t.mu.Lock()
	t.doubt.acquisitionInDoubt(a.doubtAt, a.doubtGeneration)
	t.mu.Unlock()
	for _, other := range t.batch {
		other.noteDoubt(a)
	}
}

// live reports whether the ownership can be entered again.
func (t *ownership) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == held
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
	return t.phase == pending || t.phase == held
}

// valid is for how long the holds can be relied on, without asking anybody. t.mu is held.
func (t *ownership) valid() time.Duration { return t.lease.valid(t.client.clock()) }

// span is the longest time for which the key may live. t.mu is held.
func (t *ownership) span() time.Duration { return t.doubt.span(t.lease.span()) }

// terms bound an acquisition or a release. The call has the turn of the ownership, for which
// the next renewal waits: while the ownership is held, that is a part of the lease at most.
func (t *ownership) terms(waits bool) terms {
	on := terms{t.client.sender.patience, waits}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == held {
		on.patience = min(on.patience, max(t.lease.patience(), firstPause))
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
