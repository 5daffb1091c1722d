// Package queue has the entry of an owner in the queue of a lock on the server: what the client
// knows of its place there, and the grant that ends the wait.
package queue

import (
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Entry is the entry of an owner in the queue of a lock. It is used for one wait:
//
//	          an attempt or a release          the server gives
//	          puts it into the queue           the owner the lock           the client takes the grant
//	outside ─────────────────────────▶ queued ──────────────────▶ granted ───────────────────────────▶ closed
//	   └─────────────────────────────────┴────────────────────────────────────────────────────────────────▲
//	                       the owner has the lock by its own attempt, or does not want it any more
//
// A nil entry is that of an owner that has never waited. The goroutine that drives the owner calls
// the methods, except those of [inbox.Recipient].
type Entry struct {
	inbox *inbox.Inbox
	slot  inbox.Slot    // in which messages about the owner arrive
	waker Waker         // the waiter for the owner
	made  lease.Stamp   // before the server knew the owner
	Lease time.Duration // the lease that a grant gives the owner; set before it waits

	mu          sync.Mutex // guards the fields below
	text        string     // the entry, "" if the owner does not wait in a queue of entries
	wanted      time.Duration
	closed      bool        // a grant that comes now is not wanted
	waits       bool        // the server may have the owner among the waiters
	mayBeQueued bool        // the entry may be in the queue
	hasPollTime bool        // the queue may have a poll time of the owner: see lua/queue/poller.lua
	since       string      // when it joined the queue, by the server, as last seen
	seen        lease.Stamp // before the request was sent whose reply said since
	known       bool        // the entry is in the queue, or its owner has been granted the lock
	unsure      bool        // known must not be set any more: see mustQuery
	grant       *Grant      // the grant that has arrived, or nil
}

// Grant is what the message to a client says about an owner that has been given the lock.
type Grant struct {
	Token int64
	Lease time.Duration
	since string // when the granted entry joined the queue
}

// LongestPause is the longest time for which the front relies on messages: the queue lives for a
// minute after the last call.
const LongestPause = 20 * time.Second

// New makes the entry of an owner, under its name and for the queue of a key. made is a time at
// which the server did not know the owner. Messages about the owner wake w.
func New(b *inbox.Inbox, key, owner string, w Waker, made lease.Stamp) *Entry {
	e := &Entry{inbox: b, waker: w, made: made}
	e.slot = inbox.NewSlot(key, owner, e)
	return e
}

// WaitAlone has messages about the owner wake w. A grant gives it that lease. No message has
// arrived yet.
func (e *Entry) WaitAlone(w Waker, lease time.Duration) { e.waker, e.Lease = w, lease }

// Write gives the entry its text, once. wanted is the lease that the acquisition of the owner asks
// for, and granted that of a grant.
func (e *Entry) Write(wanted, granted time.Duration, text func() string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.text == "" {
		e.wanted, e.Lease, e.text = wanted, granted, text()
	}
}

// Listen makes the client listen to messages about the owner. It reports whether a confirmation can
// be expected.
func (e *Entry) Listen() bool { return e.inbox.Listen(&e.slot) }

// Listens reports whether the client listens to messages about the owner.
func (e *Entry) Listens() bool { return e.inbox.Listens(&e.slot) }

// Expect has the client accept a message about the owner before it listens.
func (e *Entry) Expect() { e.inbox.Expect(&e.slot) }

// Expected reports whether the client accepts messages about the owner.
func (e *Entry) Expected() bool { return e.slot.Expected() }

// Place is what an attempt says of its place in the queue, each "" if there is nothing to say.
type Place struct {
	Entry    string // with which it waits
	OldEntry string // which may be in the queue already
	Poll     string // the ms after which a poller polls again, "0" for one that polls no more
}

// Known reports whether the attempt needs the queue.
func (p Place) Known() bool { return p.Entry != "" || p.OldEntry != "" }

// TakePlace returns what an attempt says of its place in the queue, and notes that it is sent.
// listens says that messages about the owner arrive. poll is the ms after which the attempt is
// repeated, or "" if it is not a poller's.
func (e *Entry) TakePlace(listens bool, poll string) (p Place) {
	if e == nil {
		return p
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mayBeQueued {
		p.OldEntry = e.text
	}
	if listens || poll != "" {
		p.Entry = e.text
		e.mayBeQueued, e.waits = true, true
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

// ReleaseBegins is called before a release of this client is sent that puts the entry into the
// queue.
func (e *Entry) ReleaseBegins() {
	e.mu.Lock()
	e.mayBeQueued, e.waits = true, true
	e.mu.Unlock()
	e.Expect()
}

// ReleaseAnswered records what that release did.
func (e *Entry) ReleaseAnswered(a transport.Answer) {
	if !script.Freed(a) || a.KeysOmitted != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known = !e.unsure
	reply, err := a.Message.ToArray()
	if err != nil || len(reply) != 2 {
		return
	}
	if owner, err := reply[0].ToString(); err == nil && owner == e.slot.Name() {
		token, _ := reply[1].ToString()
		n, _ := strconv.ParseInt(token, 10, 64)
		e.grant = &Grant{n, e.wanted, ""}
	}
}

// WaitBegins records that the server may have the owner among the waiters, from now on.
func (e *Entry) WaitBegins() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits = true
}

// SeenInQueue records that an attempt found the entry of the owner in the queue, and since when it
// has been there. A grant removes the entry, so a grant of this entry is later than the attempt,
// and its lease counts from before the attempt was sent. If the grant expires and the entry is put
// into the queue again, its time differs.
func (e *Entry) SeenInQueue(since string, sent lease.Stamp) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since, e.seen = since, sent
}

// MayBeQueued reports whether the entry may be in the queue.
func (e *Entry) MayBeQueued() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mayBeQueued
}

// MayWait reports whether the server may have the owner among the waiters.
func (e *Entry) MayWait() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waits
}

// Left returns the text of the entry if it, or a poll time of the owner, may be left in the queue,
// else "". inDoubt says that an acquisition of the owner may still be executed.
func (e *Entry) Left(inDoubt bool) string {
	if e == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waits || e.hasPollTime || inDoubt {
		return e.text
	}
	return ""
}

// Wanted returns the text of the entry, and the lease that its owner wants.
func (e *Entry) Wanted() (text string, lease time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text, e.wanted
}

// Want makes the owner want that lease. It returns the lease that the server may have given it, and
// false if that is too long. inDoubt says that an acquisition of the owner may still be executed.
func (e *Entry) Want(lease time.Duration, inDoubt bool) (given time.Duration, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	given = e.Lease
	switch {
	case e.grant != nil:
		given = e.grant.Lease
	case inDoubt:
		given = max(given, e.wanted)
	}
	if given > max(lease, e.Lease) {
		return given, false
	}
	e.wanted = lease
	return given, true
}

// TakeGrant takes the grant that has arrived for the owner, or nil, and returns from when its lease
// counts. known is true, once, if a release of this client has put the owner into the queue, and no
// grant has arrived.
func (e *Entry) TakeGrant() (g *Grant, from lease.Stamp, known bool) {
	if e == nil {
		return nil, from, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	g, from = e.grant, e.made
	if g != nil && g.since != "" && g.since == e.since {
		from = e.seen
	}
	known = e.known && g == nil
	e.grant, e.known = nil, false
	return g, from, known
}

// HoldBegins ends the wait of an owner that has the lock, and so is not among the waiters any more.
func (e *Entry) HoldBegins() {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.closed, e.waits = true, false
	e.mu.Unlock()
	e.inbox.Forget(&e.slot)
}

// GiveUp ends the wait of an owner that does not want the lock any more. It reports whether a grant
// has arrived that was not taken, and whether the server may have the owner among the waiters. A
// grant that comes later is not wanted.
func (e *Entry) GiveUp() (granted, waits bool) {
	if e == nil {
		return false, false
	}
	e.mu.Lock()
	granted, waits = e.grant != nil, e.waits
	e.closed = true
	e.mu.Unlock()
	e.inbox.Forget(&e.slot)
	return granted, waits
}
