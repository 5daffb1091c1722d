package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
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

// makeEntry makes the entry of an owner, which never changes.
func (o *ownership) makeEntry(a *acquisition) {
	e := o.ownEntry(a.since)
	if e.text != "" {
		return
	}
	of := &o.lock.client.options
	e.wanted, e.lease = a.lease, min(a.lease, of.StaleWaiterTimeout)
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

// queuePlace returns what the attempt says of its place in the queue.
func (a *acquisition) queuePlace(round int) (p queuePlace) {
	o, b := a.ownership, a.lock.client.inbox
	if !a.isWaiting || !o.lock.spec.passes || o.isGuest {
		return p
	}
	p.poll = a.pollText(round)
	polls, listens := p.poll != "", false
	if b.InUse() || polls {
		o.makeEntry(a)
		listens = b.Listens(&o.entry.slot)
	}
	if o.entry == noEntry {
		return queuePlace{}
	}
	if polls && !listens {
		b.Expect(&o.entry.slot) // the client may listen by the time of a grant
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entry
	if e.mayBeQueued {
		p.oldEntry = e.text
	}
	if listens || polls {
		p.entry = e.text
		e.mayBeQueued, o.doubt.queued = true, true
	}
	switch {
	case !listens:
		e.hasPollTime = e.hasPollTime || polls
	case e.hasPollTime:
		p.poll = "0"
	default:
		p.poll = ""
	}
	return p
}

// pollText returns the ms after which a poller polls again, or "" if the waiter is none.
func (a *acquisition) pollText(round int) string {
	switch pause := a.lock.spec.backoff; {
	case pause != nil && round == 0: // most often it gets the lock
		return ""
	case pause != nil:
		return script.MillisText(pause(round))
	}
	return a.lock.client.inbox.PollText(a.lock.names.Key, round)
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

// awaitsGrant prepares the wait of an attempt that was refused. It reports whether the server will send a
// message when this client has the lock: the holder of the lock knows the queue, and the owner waits there, or
// will as soon as the server confirms that this client listens.
func (a *acquisition) awaitsGrant(round int) bool {
	o := a.ownership
	if o == nil || !o.lock.spec.passes || o.isGuest {
		return false
	}
	mayListen := o.lock.client.inbox.Listen(&o.ownEntry(a.since).slot)
	o.mu.Lock()
	defer o.mu.Unlock()
	return !a.noQueue && (o.entry.mayBeQueued || mayListen && round < pubsub.ConfirmRounds) && (!a.byStranger)
}

// stopWaiting ends the wait for messages about the owner.
func (o *ownership) stopWaiting() {
	if o.lock.spec.handsOver {
		o.lock.client.inbox.Forget(&o.entry.slot)
	}
}

// takeGrant begins the ownership if a grant has arrived for it and is enough. known is true, once, if a release
// of this client has put the owner into the queue, so that the caller need not query the server.
func (a *acquisition) takeGrant() (begun, known bool) {
	o := a.ownership
	if o.entry == noEntry {
		return false, false
	}
	o.mu.Lock()
	granted, from := o.entry.grant, o.entry.made
	if granted != nil && granted.since != "" && granted.since == o.entry.since {
		from = o.entry.seen
	}
	known = o.entry.known && granted == nil
	o.entry.grant, o.entry.known = nil, false
	o.mu.Unlock()
	if known {
		known = o.lock.client.inbox.Listens(&o.entry.slot)
	}
	if granted == nil {
		return false, known
	}
	length := min(a.lease, granted.lease) // the grant may be longer than asked for: see wantLease
	if !a.isEnough(length, from) {
		return false, false
	}
	now := o.lock.client.clock()
	for each := range a.each {
		each.beginWith(&a.request, lease.NewGranted(from, now, length, a.lease, a.renewLease, a.renew), now, now, granted.token)
	}
	return true, false
}

// isEnough reports whether the rest of a grant's lease, which began at from, lasts until it is renewed. If not,
// the caller queries the server, which knows that the owner holds the lock.
func (a *acquisition) isEnough(granted time.Duration, from lease.Stamp) bool {
	c := a.lock.client
	if async.IsClosed(c.closing) {
		return false
	}
	left := granted - lease.Margin(granted) - c.clock().Since(from)
	least := granted / 2
	if !a.renew && a.lease <= granted {
		least = a.lease * 9 / 10
	}
	return c.confirmCalls == nil && a.maxHold == 0 && a.atLeast == 0 && left > least
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
	if q := o.lock.client.waitQueues.KnownSide(o.lock.lineKey(), o.lock.spec.line); q != nil {
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
