package latchkey

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A contended lock is handed over from client to client. An owner that is refused waits in a
// queue beside the lock; the script that releases the lock makes the first of the queue its
// owner, and tells the client of that owner on a channel of its own. So one change of owners
// costs two commands, however many wait, and is in the order in which the clients came.
//
// An owner is used for one wait and one turn, and never again: whatever comes late, or twice,
// names an owner that is used up, and finds nothing to harm. tests/handover explores this
// protocol.

// queueEntry is how an owner waits in the queue of a lock. ownership.mu guards what changes.
type queueEntry struct {
	text   string          // the entry, "" of an owner that does not wait in a queue
	lease  time.Duration   // that a grant gives it
	wanted time.Duration   // that its acquisition asks for
	made   transport.Stamp // before the owner was known to the server
	heard  *clientChannel  // on which its client is told of it, or nil; handover.mu guards it
	asked  bool            // the entry may be in the queue
	since  string          // when it came there, as the server says, when it was last seen there
	seen   transport.Stamp // before the question was sent whose answer said that
	known  bool            // it is, or the owner has been granted the lock
	unsure bool            // that is not to be relied on: see mustAsk
	grant  *grant          // that has come, or nil
	waiter waker           // who waits under the owner, or nil for the front of the lock
}

// noEntry is the entry of an owner that has none yet. Nothing in it ever changes.
var noEntry = &queueEntry{}

// ownEntry returns the entry of an owner, which is made if it has none: it was not known to the server
// at that time. Only who goes on with the ownership calls it, for the first time before anything is heard of the owner.
func (o *ownership) ownEntry(made transport.Stamp) *queueEntry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entry == noEntry {
		o.entry = &queueEntry{made: made}
	}
	return o.entry
}

// waker is told what concerns somebody who waits. Its methods must not block.
type waker interface {
	// signal wakes the waiter.
	signal()
	// reconnected is called when what was published may have been lost.
	reconnected()
}

// grant is what a client is told of an owner that has been given the lock.
type grant struct {
	token int64
	lease time.Duration
	since string // when the entry had come that was granted
}

// longestEntryPause is how long the front relies on being told: the queue lives for a minute
// after the last call.
const longestEntryPause = 20 * time.Second

// handover knows the owners of a client that wait in queues, and listens for what the server
// says of them.
type handover struct {
	client  *Client
	own     string           // the channel of this client, unless messages are sharded
	counted string           // '1' if the server counts all receivers of a message
	specs   map[string]*spec // of locks that are given back, by the kind that a message names

	any atomic.Bool // there are channels: what the client is told of an owner may be heard

	mu       sync.Mutex
	channels map[string]*clientChannel
}

// clientChannel is a channel on which this client is told of its owners: one for all locks, or
// with sharded messages one for each.
type clientChannel struct {
	*handover

	name string

	// Guarded by handover.mu.
	subscription *subscription         // nil before one is needed
	waiting      map[string]*ownership // by their names in Redis
	usedAt       time.Time
}

func newHandover(c *Client) *handover {
	h := &handover{client: c, own: "latchkey:{" + c.id + "}", counted: "1", channels: map[string]*clientChannel{}}
	h.specs = map[string]*spec{
		"h": {kind: KindLock, protocol: hashProtocol{}},
		"s": {kind: KindMutex, protocol: stringProtocol{}},
	}
	if c.cluster && c.publish == "PUBLISH" {
		h.counted = "0" // a node knows of its own subscribers only
	}
	return h
}

// channelOf returns what the channels for a lock begin and end with. The id of the client is in
// between.
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

// channelArgs appends what scripts are told of the channels of clients: what they begin and end with,
// and whether the server counts all who listen there.
func (h *handover) channelArgs(to []string, key string) []string {
	prefix, suffix := h.channelOf(key)
	return append(to, prefix, suffix, h.counted)
}

// listens reports whether the client hears what it is told of an owner. If so, what it hears is told to
// the ownership from now on.
func (h *handover) listens(o *ownership) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[h.ownChannel(o.lock.key)]; c == nil || !c.subscription.live() {
		return false
	}
	h.expect(o)
	return true
}

// expects has what is heard of an owner told to the ownership, whether the client listens or not.
func (h *handover) expects(o *ownership) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expect(o)
}

// expect has what is heard of an owner told to the ownership, which has an entry. An owner that may stand in a queue is
// always expected: what is heard of others is released. h.mu is held.
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

// listen subscribes to the channel, if that has not been done, and has the ownership woken when
// the server has confirmed. It reports whether that may be expected.
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
	case !expected && s.live(): // since the owner was refused without a place in the queue
		o.wakeFront()
	}
	return !s.refused.Load()
}

// forget ends the wait of an ownership.
func (h *handover) forget(o *ownership) {
	if o.entry.heard == nil { // only who goes on with the ownership has changed that
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

// find returns the ownership that waits under a name, or nil.
func (c *clientChannel) find(wire string) *ownership {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[wire]
}

// reconnected implements [subscriber]: all waiters ask again.
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

// channelLinger is how long the channel of a client stays subscribed that nothing waits on.
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

// addSpec says how a lock is given back that was granted, by the kind that the message names.
func (h *handover) addSpec(kind string, s *spec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.specs[kind] = s
}

// giveBack releases a lock that was granted to an owner that does not wait any more, unless the
// owner has it. While the owner releases it, a second release waits: most grants that come then are
// those that the owner has had, and have come late. If the second release were executed first,
// the owner's own would find the lock gone, and report it lost.
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

// waiter is who waits under the owner, or nil.
func (o *ownership) waiter() waker {
	if o.entry.waiter != nil {
		return o.entry.waiter
	}
	if q := o.lock.client.waitQueues.knownLine(o.lock.key, o.lock.spec.line); q != nil {
		return q
	}
	return nil
}

// wakeFront has who waits under the owner look for itself.
func (o *ownership) wakeFront() {
	if w := o.waiter(); w != nil {
		w.signal()
	}
}

// toldToAsk has who waits under the owner ask the server, whatever is known of its place.
func (o *ownership) toldToAsk() {
	o.mustAsk()
	o.wakeFront()
}

// mustAsk notes that the server is to be asked what has become of the owner, also if the release
// that has put it into the queue is answered only now: what was told after that may be missed.
func (o *ownership) mustAsk() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry.known, o.entry.unsure = false, true
}

// granted notes that the server has given the lock to the owner, and reports whether it is
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
