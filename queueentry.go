package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// This file manages the entries of this client's owners in the queues of locks: which owner has one, and how a
// grant begins an ownership.

// queueEntry is the entry of an owner in the queue of a lock. ownership.mu guards the fields that
// change.
type queueEntry struct {
	text        string        // the entry, "" if the owner does not wait in a queue
	lease       time.Duration // the lease that a grant gives it
	wanted      time.Duration // the lease that its acquisition asks for
	made        lease.Stamp   // before the server knew the owner
	slot        inbox.Slot    // in which messages about it arrive
	mayBeQueued bool          // the entry may be in the queue
	hasPollTime bool          // the queue may have a poll time of the owner: see lua/queue/poller.lua
	since       string        // when it joined the queue, by the server, as last seen
	seen        lease.Stamp   // before the request was sent whose reply said since
	known       bool          // the entry is in the queue, or its owner has been granted the lock
	unsure      bool          // known must not be set any more: see mustQuery
	grant       *grant        // the grant that has arrived, or nil
	waiter      waker         // the waiter for the owner, or nil for the front of the lock
}

// grant is what the message to a client says about an owner that has been given the lock.
type grant struct {
	token int64
	lease time.Duration
	since string // when the granted entry joined the queue
}

// noEntry is the entry of an owner that has none yet. Nothing in it ever changes.
var noEntry = &queueEntry{}

// listen makes the client listen to messages about the owner. listens reports whether it does, and expect has it
// accept a message that arrives before that.
func (o *ownership) listen()       { o.lock.client.Inbox.Listen(&o.entry.slot) }
func (o *ownership) listens() bool { return o.lock.client.Inbox.Listens(&o.entry.slot) }
func (o *ownership) expect()       { o.lock.client.Inbox.Expect(&o.entry.slot) }

// longestEntryPause is the longest time for which the front relies on messages: the queue lives for
// a minute after the last call.
const longestEntryPause = 20 * time.Second

// ownEntry returns the entry of an owner. It makes the entry if there is none; at the time made,
// the server did not know the owner. Only the goroutine that drives the ownership calls it, the
// first time before any message about the owner can arrive.
func (o *ownership) ownEntry(made lease.Stamp) *queueEntry {
	if o.entry == noEntry {
		o.lock.client.registerGrants(o.lock.spec)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.entry = &queueEntry{made: made, slot: inbox.NewSlot(o.lock.names.Key, o.wire, o)}
	}
	return o.entry
}

// waitAlone has messages about the owner wake w, instead of the front of a line. The owner wants the lock with that
// lease. made is as for ownEntry.
func (o *ownership) waitAlone(w waker, lease time.Duration, made lease.Stamp) {
	e := o.ownEntry(made)
	e.lease, e.waiter = min(lease, o.lock.client.Config.StaleWaiterTimeout), w
}

// makeEntry makes the entry of an owner that wants the lock with that lease. The entry never changes. made is as for
// ownEntry.
func (o *ownership) makeEntry(wanted time.Duration, made lease.Stamp) {
	e := o.ownEntry(made)
	if e.text != "" {
		return
	}
	of := &o.lock.client.Config
	e.wanted, e.lease = wanted, min(wanted, of.StaleWaiterTimeout)
	e.text = o.wire + " " + script.MillisText(e.lease) + " " + o.lock.spec.entryTokens(of.TimeFencing)
}

// queuePlace is what an attempt says of its place in the queue, each "" if there is nothing to say.
type queuePlace struct {
	entry    string // with which it waits
	oldEntry string // which may be in the queue already
	poll     string // the ms after which a poller polls again, "0" for one that polls no more
}

// known reports whether the attempt needs the queue.
func (p queuePlace) known() bool { return p.entry != "" || p.oldEntry != "" }

// takePlace returns what an attempt says of its place in the queue, and notes that it is sent. listens says that
// messages about the owner arrive. poll is the ms after which the attempt is repeated, or "" if it is not a poller's.
func (o *ownership) takePlace(listens bool, poll string) (p queuePlace) {
	e := o.entry
	if e == noEntry {
		return p
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.mayBeQueued {
		p.oldEntry = e.text
	}
	if listens || poll != "" {
		p.entry = e.text
		e.mayBeQueued, o.doubt.Queued = true, true
	}
	switch {
	case !listens:
		e.hasPollTime = e.hasPollTime || poll != ""
		p.poll = poll
	case e.hasPollTime:
		p.poll = "0"
	}
	return p
}

// takeGrant takes the grant that has arrived for the owner, or nil, and returns from when its lease counts. known is
// true, once, if a release of this client has put the owner into the queue, and no grant has arrived.
func (o *ownership) takeGrant() (g *grant, from lease.Stamp, known bool) {
	e := o.entry
	if e == noEntry {
		return nil, from, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	g, from = e.grant, e.made
	if g != nil && g.since != "" && g.since == e.since {
		from = e.seen
	}
	known = e.known && g == nil
	e.grant, e.known = nil, false
	return g, from, known
}

// wantLease makes the owner, which waits in a queue, want that lease. It returns false if the server may have given it
// a longer one. If the grant of its entry is longer, but no longer than any such grant, the rest is undone when the
// hold is over.
func (o *ownership) wantLease(lease time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, given := o.entry, o.entry.lease
	switch {
	case e.grant != nil:
		given = e.grant.lease
	case o.doubt.Acquisition():
		given = max(given, e.wanted)
	}
	switch {
	case given > max(lease, e.lease):
		return false
	case given > lease:
		o.doubt.ExtensionInDoubt(given)
	}
	e.wanted = lease
	return true
}

// hasOnlyItsPlace reports whether the owner has a place in the queue, and can have nothing else.
func (o *ownership) hasOnlyItsPlace() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase == acquiring && o.entry.mayBeQueued && !o.doubt.MayBeHeld()
}

// mayBeQueued reports whether the entry of the owner may be in the queue.
func (o *ownership) mayBeQueued() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.entry.mayBeQueued
}

// seenInQueue records that an attempt found the entry of the owner in the queue, and since when it has been
// there. A grant removes the entry, so a grant of this entry is later than the attempt, and its lease counts
// from before the attempt was sent. If the grant expires and the entry is put into the queue again, its time
// differs.
func (o *ownership) seenInQueue(since string, sent lease.Stamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entry != noEntry {
		o.entry.since, o.entry.seen = since, sent
	}
}

// stopWaiting ends the wait for messages about the owner.
func (o *ownership) stopWaiting() {
	if o.lock.spec.handsOver {
		o.lock.client.Inbox.Forget(&o.entry.slot)
	}
}

// waker receives the events that concern a waiter. Its methods must not block.
type waker interface {
	// Signal wakes the waiter.
	Signal()
	// Reconnected is called when messages may have been lost.
	Reconnected()
}

// waiter returns the waiter for the owner, or nil.
func (o *ownership) waiter() waker {
	if o.entry.waiter != nil {
		return o.entry.waiter
	}
	if q := o.lock.client.Lines.KnownSide(o.lock.lineKey(), o.lock.spec.line); q != nil {
		return q
	}
	return nil
}

// Signal implements [inbox.Recipient]: it wakes the waiter for the owner, so that it looks at its state.
func (o *ownership) Signal() {
	if w := o.waiter(); w != nil {
		w.Signal()
	}
}

// Query implements [inbox.Recipient]: the waiter for the owner queries the server, whatever is known of its place.
func (o *ownership) Query() {
	o.mustQuery()
	o.Signal()
}

// Reconnected implements [inbox.Recipient].
func (o *ownership) Reconnected() {
	o.mustQuery()
	if w := o.waiter(); w != nil {
		w.Reconnected()
	}
}

// mustQuery notes that the server must be queried about the owner. That holds even if the reply to
// the release that queued the owner arrives only now: messages after that release may have been
// lost.
func (o *ownership) mustQuery() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry.known, o.entry.unsure = false, true
}

// Granted implements [inbox.Recipient]: the server has given the lock to the owner.
func (o *ownership) Granted(token int64, since string) bool {
	o.mu.Lock()
	wanted := o.phase == acquiring || o.phase == held
	if o.phase == acquiring {
		o.entry.grant = &grant{token, o.entry.lease, since}
	}
	o.mu.Unlock()
	if wanted {
		o.Signal()
	}
	return wanted
}
