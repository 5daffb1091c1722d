package inbox

import (
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// channel is a channel on which this client receives messages about its recipients: one for all
// locks, or, with sharded messages, one for each lock.
type channel struct {
	*Inbox

	name string

	// Guarded by Inbox.mu.
	subscription *pubsub.Subscription // nil before one is needed
	waiting      map[string]Recipient // by the names in their entries
	usedAt       time.Time
}

// channelLinger is how long a client's channel stays subscribed while no waiter needs it.
const channelLinger = 5 * time.Second

// channelFor returns the channel for messages about a key. b.mu is held.
func (b *Inbox) channelFor(key string) *channel {
	name := b.ownChannel(key)
	c := b.channels[name]
	if c == nil {
		c = &channel{Inbox: b, name: name, waiting: map[string]Recipient{}}
		b.channels[name] = c
		b.used.Store(true)
	}
	return c
}

// subscribe returns the subscription to the channel, which the caller begins if it is fresh.
// Inbox.mu is held.
func (c *channel) subscribe() (s *pubsub.Subscription, fresh bool) {
	if c.subscription == nil {
		c.subscription, fresh = &pubsub.Subscription{Channel: c.name, To: c}, true
	}
	return c.subscription, fresh
}

// expect directs messages to the recipient of a slot. Inbox.mu is held.
func (c *channel) expect(s *Slot) { s.channel, c.waiting[s.name] = c, s.to }

// stopExpecting ends expect. Inbox.mu is held.
func (c *channel) stopExpecting(s *Slot) {
	s.channel = nil
	delete(c.waiting, s.name)
	if c.subscription == nil && len(c.waiting) == 0 {
		c.drop()
	}
}

// drop forgets the channel. Inbox.mu is held.
func (c *channel) drop() {
	delete(c.channels, c.name)
	c.used.Store(len(c.channels) > 0)
}

// Reconnected implements [pubsub.Subscriber]: all recipients query the server again.
func (c *channel) Reconnected() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.waiting))
	c.mu.Unlock()
	for _, each := range all {
		each.Reconnected()
	}
}

// Retire implements [pubsub.Subscriber].
func (c *channel) Retire(linger time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.config.Sharded {
		linger = channelLinger
	}
	if len(c.waiting) > 0 || time.Since(c.usedAt) < linger {
		return false
	}
	c.drop()
	return true
}
