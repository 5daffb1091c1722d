package latchkey

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// clientChannel is a channel on which this client receives messages about its owners: one for all
// locks, or, with sharded messages, one for each lock.
type clientChannel struct {
	*handover

	name string

	// Guarded by handover.mu.
	subscription *pubsub.Subscription // nil before one is needed
	waiting      map[string]addressee // by the names in their entries
	usedAt       time.Time
}

// addressee is who waits in a queue on the server. Its methods must not block.
type addressee interface {
	// receiveGrant notes that the server has given it what it waits for, and reports whether that is wanted.
	receiveGrant(token int64, since string) bool
	// wakeToQuery makes it query the server.
	wakeToQuery()
	// missedMessages makes it query the server, because messages may have been lost.
	missedMessages()
}

// channelLinger is how long a client's channel stays subscribed while no waiter needs it.
const channelLinger = 5 * time.Second

// listens reports whether the client listens for messages about an owner. If so, they go to the
// ownership from now on.
func (h *handover) listens(o *ownership) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[h.ownChannel(o.lock.names.Key)]; c == nil || !c.subscription.Live() {
		return false
	}
	h.expectLocked(o)
	return true
}

// expect directs messages about an owner to the ownership, whether the client listens or not.
func (h *handover) expect(o *ownership) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expectLocked(o)
}

// expectLocked is expect, and returns the channel. The ownership has an entry. An owner that may be in
// a queue is always expected: grants to other owners are released, by the spec that is kept here. h.mu
// is held.
func (h *handover) expectLocked(o *ownership) *clientChannel {
	c := o.entry.channel
	if c == nil {
		c = h.channelFor(o.lock.names.Key)
		o.entry.channel, c.waiting[o.wire] = c, o
		if s := o.lock.spec; s.grantMark != "" {
			h.specs[s.grantMark] = s
		}
	}
	c.usedAt = time.Now()
	return c
}

// channelFor returns the channel for messages about a key. h.mu is held.
func (h *handover) channelFor(key string) *clientChannel {
	name := h.ownChannel(key)
	c := h.channels[name]
	if c == nil {
		c = &clientChannel{handover: h, name: name, waiting: map[string]addressee{}}
		h.channels[name] = c
		h.any.Store(true)
	}
	return c
}

// listen subscribes to the channel, unless that was done before, and wakes the waiter of the
// ownership when the server has confirmed. It reports whether a confirmation can be expected.
func (h *handover) listen(o *ownership) bool {
	h.mu.Lock()
	expected := o.entry.channel != nil
	s, fresh := h.expectLocked(o).subscribe()
	h.mu.Unlock()
	switch {
	case fresh:
		h.client.notifier.Add(s)
	case !expected && s.Live(): // it became live after the owner was refused and not queued
		o.wakeFront()
	}
	return !s.Refused.Load()
}

// MustPoll reports whether a waiter can expect no messages about a key in that round.
func (h *handover) mustPoll(key string, round int) bool {
	var s *pubsub.Subscription
	if h.any.Load() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c := h.channels[h.ownChannel(key)]; c != nil {
			s = c.subscription
		}
	}
	return s.MustPoll(round)
}

// pollText returns the ms after which a waiter for a key polls again, for a script, or "" if it can expect messages.
func (h *handover) pollText(key string, round int) string {
	if !h.mustPoll(key, round) {
		return ""
	}
	return script.MillisText(h.client.options.PollCeiling)
}

// subscribe returns the subscription to the channel, which the caller adds to the notifier if it is fresh. handover.mu
// is held.
func (c *clientChannel) subscribe() (s *pubsub.Subscription, fresh bool) {
	if c.subscription == nil {
		c.subscription, fresh = &pubsub.Subscription{Channel: c.name, To: c}, true
	}
	return c.subscription, fresh
}

// expectName directs messages with a name to an addressee, if the client has a channel for them. It comes before the
// request that may put the name into a queue: a message may be faster than the reply.
func (h *handover) expectName(key, name string, who addressee) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[h.ownChannel(key)]; c != nil {
		c.waiting[name] = who
	}
}

// listenFor subscribes to the channel for messages about a key, and directs those with a name to an addressee. If some
// may have been missed by then, the addressee has to query the server: when the subscription begins, or at once.
func (h *handover) listenFor(key, name string, who addressee) {
	h.mu.Lock()
	c := h.channelFor(key)
	expected := c.waiting[name] != nil
	c.waiting[name], c.usedAt = who, time.Now()
	s, fresh := c.subscribe()
	h.mu.Unlock()
	switch {
	case fresh:
		h.client.notifier.Add(s)
	case !expected && s.Live():
		who.wakeToQuery()
	}
}

// forgetName ends expectName.
func (h *handover) forgetName(key, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[h.ownChannel(key)]; c != nil {
		c.stopExpecting(name)
	}
}

// forget stops directing messages to an ownership, whose wait is over.
func (h *handover) forget(o *ownership) {
	if o.entry.channel == nil { // only the goroutine that drives the ownership changes it
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := o.entry.channel
	if c == nil {
		return
	}
	o.entry.channel = nil
	c.stopExpecting(o.wire)
}

// stopExpecting ends expectName, or expect. handover.mu is held.
func (c *clientChannel) stopExpecting(name string) {
	delete(c.waiting, name)
	if c.subscription == nil && len(c.waiting) == 0 {
		c.drop()
	}
}

// drop forgets the channel. handover.mu is held.
func (c *clientChannel) drop() {
	delete(c.channels, c.name)
	c.any.Store(len(c.channels) > 0)
}

// find returns who waits under a name, or nil.
func (c *clientChannel) find(name string) addressee {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[name]
}

// Reconnected implements [pubsub.Subscriber]: all waiters query the server again.
func (c *clientChannel) Reconnected() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.waiting))
	c.mu.Unlock()
	for _, each := range all {
		each.missedMessages()
	}
}

// Retire implements [pubsub.Subscriber].
func (c *clientChannel) Retire(linger time.Duration) bool {
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

// Message implements [pubsub.Subscriber]:
//
//	grant <kind> <owner> <token>@<score of its entry> <key>
//	call <permits> <operation> <key>
//	ask <ms> <owner or operation> <key>
func (c *clientChannel) Message(text string) {
	what, rest, _ := strings.Cut(text, " ")
	first, rest, _ := strings.Cut(rest, " ")
	owner, rest, _ := strings.Cut(rest, " ")
	switch what {
	case "grant":
		what, key, _ := strings.Cut(rest, " ")
		token, since, _ := strings.Cut(what, "@")
		n, _ := strconv.ParseInt(token, 10, 64)
		if o := c.find(owner); o == nil || !o.receiveGrant(n, since) {
			c.giveBack(first, owner, key)
		}
	case "call":
		if who := c.find(owner); who != nil {
			who.wakeToQuery()
		} else if c.strayCall != nil {
			c.strayCall(rest, owner+" "+first)
		}
	case "ask":
		ms, _ := strconv.ParseInt(first, 10, 64)
		if o := c.find(owner); o != nil {
			time.AfterFunc(script.FromMillis(ms), o.wakeToQuery)
		}
	}
}

// unclaimed handles a message on a channel of this client to which nobody listens any more. The server still counts
// the client as listening there, so it may grant a lock to a poller, or to an owner whose entry was left behind.
func (h *handover) unclaimed(channel, text string) {
	if !strings.HasPrefix(channel, "latchkey:") || !strings.Contains(channel, h.client.id) {
		return
	}
	h.mu.Lock()
	c := h.channels[channel]
	h.mu.Unlock()
	if c == nil {
		c = &clientChannel{handover: h, name: channel}
	}
	c.Message(text)
}
