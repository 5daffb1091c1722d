package latchkey

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A contended lock is handed over from client to client. An owner that is refused waits in a queue
// next to the lock. The script that releases the lock makes the first in the queue its owner, and
// tells the client of that owner on the client's own channel. So a change of owners costs two
// commands, however many wait, and follows the order in which the clients arrived.
//
// An owner is used for one wait and one turn, and never again. A message or command that comes
// late, or twice, names an owner that is already used, and can do no harm. tests/handover explores
// this protocol.

// queueEntry is the entry of an owner in the queue of a lock. ownership.mu guards the fields that
// change.
type queueEntry struct {
	text   string          // the entry, "" if the owner does not wait in a queue
	lease  time.Duration   // the lease that a grant gives it
	wanted time.Duration   // the lease that its acquisition asks for
	made   transport.Stamp // before the server knew the owner
	heard  *clientChannel  // where messages about it arrive, or nil; handover.mu guards it
	asked  bool            // the entry may be in the queue
	since  string          // when it joined the queue, by the server, as last seen
	seen   transport.Stamp // before the request was sent whose reply said since
	known  bool            // the entry is in the queue, or its owner has been granted the lock
	unsure bool            // known must not be set any more: see mustAsk
	grant  *grant          // the grant that has arrived, or nil
	waiter waker           // the waiter for the owner, or nil for the front of the lock
}

// noEntry is the entry of an owner that has none yet. Nothing in it ever changes.
var noEntry = &queueEntry{}

// ownEntry returns the entry of an owner. It makes the entry if there is none; at the time made,
// the server did not know the owner. Only the goroutine that drives the ownership calls it, the
// first time before any message about the owner can arrive.
func (o *ownership) ownEntry(made transport.Stamp) *queueEntry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entry == noEntry {
		o.entry = &queueEntry{made: made}
	}
	return o.entry
}

// waker receives the events that concern a waiter. Its methods must not block.
type waker interface {
	// signal wakes the waiter.
	signal()
	// reconnected is called when messages may have been lost.
	reconnected()
}

// grant is what the message to a client says about an owner that has been given the lock.
type grant struct {
	token int64
	lease time.Duration
	since string // when the granted entry joined the queue
}

// longestEntryPause is the longest time for which the front relies on messages: the queue lives for
// a minute after the last call.
const longestEntryPause = 20 * time.Second

// handover knows the owners of a client that wait in queues, and listens for messages about them.
type handover struct {
	client  *Client
	own     string           // the channel of this client, unless messages are sharded
	counted string           // '1' if the server counts all receivers of a message
	specs   map[string]*spec // for locks to be given back, by the kind that a message names

	any atomic.Bool // there are channels, so messages about an owner may arrive

	mu       sync.Mutex
	channels map[string]*clientChannel
}

// clientChannel is a channel on which this client receives messages about its owners: one for all
// locks, or, with sharded messages, one for each lock.
type clientChannel struct {
	*handover

	name string

	// Guarded by handover.mu.
	subscription *subscription         // nil before one is needed
	waiting      map[string]*ownership // by the names of their owners in Redis
	usedAt       time.Time
}

func newHandover(c *Client) *handover {
	h := &handover{client: c, own: "latchkey:{" + c.id + "}", counted: "1", channels: map[string]*clientChannel{}}
	h.specs = map[string]*spec{
		"h": {kind: KindLock, protocol: hashProtocol{}},
		"s": {kind: KindMutex, protocol: stringProtocol{}},
	}
	if c.cluster && c.publish == "PUBLISH" {
		h.counted = "0" // a node counts its own subscribers only
	}
	return h
}

// channelOf returns the prefix and the suffix of the clients' channels for a lock. The id of the
// client goes in between.
func (h *handover) channelOf(key string) (prefix, suffix string) {
	if h.client.publish == "SPUBLISH" {
		return "latchkey:" + transport.HashTag(key) + ":", ""
	}
	return "latchkey:{", "}"
}

// ownChannel is the channel of this client for a lock.
func (h *handover) ownChannel(key string) string {
	if h.client.publish == "SPUBLISH" {
		prefix, suffix := h.channelOf(key)
		return prefix + h.client.id + suffix
	}
	return h.own
}

// channelArgs appends what scripts need to know about the clients' channels: prefix, suffix, and
// whether the server counts all receivers.
func (h *handover) channelArgs(to []string, key string) []string {
	prefix, suffix := h.channelOf(key)
	return append(to, prefix, suffix, h.counted)
}

// listens reports whether the client listens for messages about an owner. If so, they go to the
// ownership from now on.
func (h *handover) listens(o *ownership) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[h.ownChannel(o.lock.key)]; c == nil || !c.subscription.live() {
		return false
	}
	h.expect(o)
	return true
}

// expects directs messages about an owner to the ownership, whether the client listens or not.
func (h *handover) expects(o *ownership) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expect(o)
}

// expect directs messages about an owner to the ownership, which has an entry. An owner that may be
// in a queue is always expected: grants to other owners are released. h.mu is held.
func (h *handover) expect(o *ownership) *clientChannel {
	c := o.entry.heard
	if c == nil {
		name := h.ownChannel(o.lock.key)
		if c = h.channels[name]; c == nil {
			c = &clientChannel{handover: h, name: name, waiting: map[string]*ownership{}}
			h.channels[name] = c
			h.any.Store(true)
		}
		o.entry.heard, c.waiting[o.wire] = c, o
	}
	c.usedAt = time.Now()
	return c
}

// listen subscribes to the channel, unless that was done before, and wakes the waiter of the
// ownership when the server has confirmed. It reports whether a confirmation can be expected.
func (h *handover) listen(o *ownership) bool {
	if h.client.notifier == nil {
		return false
	}
	h.mu.Lock()
	expected := o.entry.heard != nil
	c := h.expect(o)
	s, fresh := c.subscription, c.subscription == nil
	if fresh {
		s = &subscription{channel: c.name, to: c}
		c.subscription = s
	}
	h.mu.Unlock()
	switch {
	case fresh:
		h.client.notifier.add(s)
	case !expected && s.live(): // it became live after the owner was refused without a place
		o.wakeFront()
	}
	return !s.refused.Load()
}

// forget stops directing messages to an ownership, whose wait is over.
func (h *handover) forget(o *ownership) {
	if o.entry.heard == nil { // only the goroutine that drives the ownership changes it
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := o.entry.heard
	if c == nil {
		return
	}
	o.entry.heard = nil
	delete(c.waiting, o.wire)
	if c.subscription == nil && len(c.waiting) == 0 {
		c.drop()
	}
}

// drop forgets the channel. handover.mu is held.
func (c *clientChannel) drop() {
	delete(c.channels, c.name)
	c.any.Store(len(c.channels) > 0)
}

// find returns the ownership that waits under the name of an owner, or nil.
func (c *clientChannel) find(wire string) *ownership {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[wire]
}

// reconnected implements [subscriber]: all waiters query the server again.
func (c *clientChannel) reconnected() {
	c.mu.Lock()
	all := make([]*ownership, 0, len(c.waiting))
	for _, o := range c.waiting {
		all = append(all, o)
	}
	c.mu.Unlock()
	for _, o := range all {
		o.mustAsk()
		if w := o.waiter(); w != nil {
			w.reconnected()
		}
	}
}

// channelLinger is how long a client's channel stays subscribed while no waiter needs it.
const channelLinger = 5 * time.Second

// retire implements [subscriber].
func (c *clientChannel) retire(linger time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client.publish == "PUBLISH" {
		linger = channelLinger
	}
	if len(c.waiting) > 0 || time.Since(c.usedAt) < linger {
		return false
	}
	c.drop()
	return true
}

// message implements [subscriber]:
//
//	grant <kind> <owner> <first token>@<score of its entry> <key>
//	ask <ms> <owner> <key>
func (c *clientChannel) message(text string) {
	what, rest, _ := strings.Cut(text, " ")
	first, rest, _ := strings.Cut(rest, " ")
	owner, rest, _ := strings.Cut(rest, " ")
	switch what {
	case "grant":
		what, key, _ := strings.Cut(rest, " ")
		token, since, _ := strings.Cut(what, "@")
		n, _ := strconv.ParseInt(token, 10, 64)
		if o := c.find(owner); o == nil || !o.granted(n, since) {
			c.giveBack(first, owner, key)
		}
	case "ask":
		ms, _ := strconv.ParseInt(first, 10, 64)
		if o := c.find(owner); o != nil {
			time.AfterFunc(fromMillis(ms), o.toldToAsk)
		}
	}
}

// addSpec registers the spec with which an unwanted grant is given back, by the kind that the
// message names.
func (h *handover) addSpec(kind string, s *spec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.specs[kind] = s
}

// giveBack releases a lock that was granted to an owner that no longer waits, unless the owner has
// the lock. While the owner releases it, a second release is delayed: most grants that arrive then
// are late copies of the grant that the owner has used. If the second release were executed first,
// the owner's own release would find the lock gone, and report it lost.
func (h *handover) giveBack(kind, owner, key string) {
	name := ownerOf(owner)
	if o := h.client.registry.liveOn(key, name); o != nil {
		if !o.usable() {
			o.undoLater(undoRetry, h.client.options.StaleWaiterTimeout)
		}
		return
	}
	h.mu.Lock()
	spec := h.specs[kind]
	h.mu.Unlock()
	if spec == nil || spec.inUse != nil && spec.inUse(h.client.registry, key, owner) {
		return
	}
	lock := &primitive{}
	lock.initOf(h.client, spec, keysOfKey(key, key))
	o := h.client.registry.build(lock, name, 0, false)
	h.client.sender.Background(func() {
		h.client.undo.add(o.lastRelease(), undoPlan{key: key, lease: h.client.options.StaleWaiterTimeout})
	})
}

// waiter returns the waiter for the owner, or nil.
func (o *ownership) waiter() waker {
	if o.entry.waiter != nil {
		return o.entry.waiter
	}
	if q := o.lock.client.waitQueues.knownLine(o.lock.key, o.lock.spec.line); q != nil {
		return q
	}
	return nil
}

// wakeFront wakes the waiter for the owner, so that it looks at its state.
func (o *ownership) wakeFront() {
	if w := o.waiter(); w != nil {
		w.signal()
	}
}

// toldToAsk makes the waiter for the owner query the server, whatever is known of its place.
func (o *ownership) toldToAsk() {
	o.mustAsk()
	o.wakeFront()
}

// mustAsk notes that the server must be queried about the owner. That holds even if the reply to
// the release that queued the owner arrives only now: messages after that release may have been
// lost.
func (o *ownership) mustAsk() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry.known, o.entry.unsure = false, true
}

// granted notes that the server has given the lock to the owner, and reports whether the grant is
// wanted.
func (o *ownership) granted(token int64, since string) bool {
	o.mu.Lock()
	wanted := o.phase == acquiring || o.phase == held
	if o.phase == acquiring {
		o.entry.grant = &grant{token, o.entry.lease, since}
	}
	o.mu.Unlock()
	if wanted {
		o.wakeFront()
	}
	return wanted
}
