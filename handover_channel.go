package latchkey

import (
	"strconv"
	"strings"
	"time"
)

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

// channelLinger is how long a client's channel stays subscribed while no waiter needs it.
const channelLinger = 5 * time.Second

// listens reports whether the client listens for messages about an owner. If so, they go to the
// ownership from now on.
func (h *handover) listens(o *ownership) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.channels[h.ownChannel(o.lock.key)]; c == nil || !c.subscription.live() {
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
		name := h.ownChannel(o.lock.key)
		if c = h.channels[name]; c == nil {
			c = &clientChannel{handover: h, name: name, waiting: map[string]*ownership{}}
			h.channels[name] = c
			h.any.Store(true)
		}
		o.entry.channel, c.waiting[o.wire] = c, o
		if s := o.lock.spec; s.grantMark != "" {
			h.specs[s.grantMark] = s
		}
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
	expected := o.entry.channel != nil
	c := h.expectLocked(o)
	s, fresh := c.subscription, c.subscription == nil
	if fresh {
		s = &subscription{channel: c.name, to: c}
		c.subscription = s
	}
	h.mu.Unlock()
	switch {
	case fresh:
		h.client.notifier.add(s)
	case !expected && s.live(): // it became live after the owner was refused and not queued
		o.wakeFront()
	}
	return !s.refused.Load()
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
		o.mustQuery()
		if w := o.waiter(); w != nil {
			w.reconnected()
		}
	}
}

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
//	grant <kind> <owner> <token>@<score of its entry> <key>
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
		if o := c.find(owner); o == nil || !o.receiveGrant(n, since) {
			c.giveBack(first, owner, key)
		}
	case "ask":
		ms, _ := strconv.ParseInt(first, 10, 64)
		if o := c.find(owner); o != nil {
			time.AfterFunc(fromMillis(ms), o.wakeToQuery)
		}
	}
}

// unclaimed handles a message on a channel of this client that no waiter needs any more. The server still counts
// the client as listening there, so it may grant a lock to an owner whose entry was left behind.
func (h *handover) unclaimed(channel, text string) {
	if strings.HasPrefix(channel, "latchkey:") && strings.Contains(channel, h.client.id) {
		(&clientChannel{handover: h, name: channel}).message(text)
	}
}
