package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// This file manages the entries of this client's owners in the queues of locks: which owner has one, and how a
// grant begins an ownership.

// QueueEntry is the entry of an owner in the queue of a lock. Ownership.mu guards the fields that
// change.
type QueueEntry struct {
	Text        string        // the entry, "" if the owner does not wait in a queue
	Lease       time.Duration // the lease that a grant gives it
	wanted      time.Duration // the lease that its acquisition asks for
	made        lease.Stamp   // before the server knew the owner
	Slot        inbox.Slot    // in which messages about it arrive
	MayBeQueued bool          // the entry may be in the queue
	hasPollTime bool          // the queue may have a poll time of the owner: see lua/queue/poller.lua
	since       string        // when it joined the queue, by the server, as last seen
	seen        lease.Stamp   // before the request was sent whose reply said since
	known       bool          // the entry is in the queue, or its owner has been granted the lock
	unsure      bool          // known must not be set any more: see mustQuery
	grant       *Grant        // the grant that has arrived, or nil
	waiter      waker         // the waiter for the owner, or nil for the front of the lock
}

// Grant is what the message to a client says about an owner that has been given the lock.
type Grant struct {
	Token int64
	Lease time.Duration
	since string // when the granted entry joined the queue
}

// noEntry is the entry of an owner that has none yet. Nothing in it ever changes.
var noEntry = &QueueEntry{}

// Listen makes the client listen to messages about the owner.
func (o *Ownership) Listen() { o.Lock.Client.Inbox.Listen(&o.Entry.Slot) }

// Listens reports whether the client listens to messages about the owner.
func (o *Ownership) Listens() bool { return o.Lock.Client.Inbox.Listens(&o.Entry.Slot) }

// Expect has the client accept a message about the owner before it listens.
func (o *Ownership) Expect() { o.Lock.Client.Inbox.Expect(&o.Entry.Slot) }

// LongestEntryPause is the longest time for which the front relies on messages: the queue lives for
// a minute after the last call.
const LongestEntryPause = 20 * time.Second

// OwnEntry returns the entry of an owner. It makes the entry if there is none; at the time made,
// the server did not know the owner. Only the goroutine that drives the ownership calls it, the
// first time before any message about the owner can arrive.
func (o *Ownership) OwnEntry(made lease.Stamp) *QueueEntry {
	if o.Entry == noEntry {
		o.Lock.Client.RegisterGrants(o.Lock.Spec)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.Entry = &QueueEntry{made: made, Slot: inbox.NewSlot(o.Lock.Names.Key, o.Wire, o)}
	}
	return o.Entry
}

// WaitAlone has messages about the owner wake w, instead of the front of a line. The owner wants the lock with that
// lease. made is as for OwnEntry.
func (o *Ownership) WaitAlone(w waker, lease time.Duration, made lease.Stamp) {
	e := o.OwnEntry(made)
	e.Lease, e.waiter = min(lease, o.Lock.Client.Config.StaleWaiterTimeout), w
}

// MakeEntry makes the entry of an owner that wants the lock with that lease. The entry never changes. made is as for
// OwnEntry.
func (o *Ownership) MakeEntry(wanted time.Duration, made lease.Stamp) {
	e := o.OwnEntry(made)
	if e.Text != "" {
		return
	}
	of := &o.Lock.Client.Config
	e.wanted, e.Lease = wanted, min(wanted, of.StaleWaiterTimeout)
	e.Text = o.Wire + " " + script.MillisText(e.Lease) + " " + o.Lock.Spec.entryTokens(of.TimeFencing)
}

// QueuePlace is what an attempt says of its place in the queue, each "" if there is nothing to say.
type QueuePlace struct {
	Entry    string // with which it waits
	OldEntry string // which may be in the queue already
	Poll     string // the ms after which a poller polls again, "0" for one that polls no more
}

// Known reports whether the attempt needs the queue.
func (p QueuePlace) Known() bool { return p.Entry != "" || p.OldEntry != "" }

// TakePlace returns what an attempt says of its place in the queue, and notes that it is sent. listens says that
// messages about the owner arrive. poll is the ms after which the attempt is repeated, or "" if it is not a poller's.
func (o *Ownership) TakePlace(listens bool, poll string) (p QueuePlace) {
	e := o.Entry
	if e == noEntry {
		return p
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.MayBeQueued {
		p.OldEntry = e.Text
	}
	if listens || poll != "" {
		p.Entry = e.Text
		e.MayBeQueued, o.Doubt.Queued = true, true
	}
	switch {
	case !listens:
		e.hasPollTime = e.hasPollTime || poll != ""
		p.Poll = poll
	case e.hasPollTime:
		p.Poll = "0"
	}
	return p
}

// TakeGrant takes the grant that has arrived for the owner, or nil, and returns from when its lease counts. known is
// true, once, if a release of this client has put the owner into the queue, and no grant has arrived.
func (o *Ownership) TakeGrant() (g *Grant, from lease.Stamp, known bool) {
	e := o.Entry
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

// WantLease makes the owner, which waits in a queue, want that lease. It returns false if the server may have given it
// a longer one. If the grant of its entry is longer, but no longer than any such grant, the rest is undone when the
// hold is over.
func (o *Ownership) WantLease(lease time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, given := o.Entry, o.Entry.Lease
	switch {
	case e.grant != nil:
		given = e.grant.Lease
	case o.Doubt.Acquisition():
		given = max(given, e.wanted)
	}
	switch {
	case given > max(lease, e.Lease):
		return false
	case given > lease:
		o.Doubt.ExtensionInDoubt(given)
	}
	e.wanted = lease
	return true
}

// HasOnlyItsPlace reports whether the owner has a place in the queue, and can have nothing else.
func (o *Ownership) HasOnlyItsPlace() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Phase == Acquiring && o.Entry.MayBeQueued && !o.Doubt.MayBeHeld()
}

// MayBeQueued reports whether the entry of the owner may be in the queue.
func (o *Ownership) MayBeQueued() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Entry.MayBeQueued
}

// SeenInQueue records that an attempt found the entry of the owner in the queue, and since when it has been
// there. A grant removes the entry, so a grant of this entry is later than the attempt, and its lease counts
// from before the attempt was sent. If the grant expires and the entry is put into the queue again, its time
// differs.
func (o *Ownership) SeenInQueue(since string, sent lease.Stamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Entry != noEntry {
		o.Entry.since, o.Entry.seen = since, sent
	}
}

// stopWaiting ends the wait for messages about the owner.
func (o *Ownership) stopWaiting() {
	if o.Lock.Spec.HandsOver {
		o.Lock.Client.Inbox.Forget(&o.Entry.Slot)
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
func (o *Ownership) waiter() waker {
	if o.Entry.waiter != nil {
		return o.Entry.waiter
	}
	if q := o.Lock.Client.Lines.KnownSide(o.Lock.LineKey(), o.Lock.Spec.Line); q != nil {
		return q
	}
	return nil
}

// Signal implements [inbox.Recipient]: it wakes the waiter for the owner, so that it looks at its state.
func (o *Ownership) Signal() {
	if w := o.waiter(); w != nil {
		w.Signal()
	}
}

// Query implements [inbox.Recipient]: the waiter for the owner queries the server, whatever is known of its place.
func (o *Ownership) Query() {
	o.mustQuery()
	o.Signal()
}

// Reconnected implements [inbox.Recipient].
func (o *Ownership) Reconnected() {
	o.mustQuery()
	if w := o.waiter(); w != nil {
		w.Reconnected()
	}
}

// mustQuery notes that the server must be queried about the owner. That holds even if the reply to
// the release that queued the owner arrives only now: messages after that release may have been
// lost.
func (o *Ownership) mustQuery() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Entry.known, o.Entry.unsure = false, true
}

// Granted implements [inbox.Recipient]: the server has given the lock to the owner.
func (o *Ownership) Granted(token int64, since string) bool {
	o.mu.Lock()
	wanted := o.Phase == Acquiring || o.Phase == Held
	if o.Phase == Acquiring {
		o.Entry.grant = &Grant{token, o.Entry.Lease, since}
	}
	o.mu.Unlock()
	if wanted {
		o.Signal()
	}
	return wanted
}
