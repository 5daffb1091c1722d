package inbox

import "time"

// Recipient is who waits in a queue on the server. Its methods must not block.
type Recipient interface {
	// Granted notes that the server has given it what it waits for, and reports whether that is
	// wanted. since is when the granted entry joined the queue.
	Granted(token int64, since string) (wanted bool)
	// Signal makes it look at what it knows.
	Signal()
	// Query makes it query the server.
	Query()
	// Reconnected makes it query the server, because messages may have been lost.
	Reconnected()
}

// Slot is where a recipient waits: under a name, in the queue of a key. The goroutine that drives
// the recipient is the only one that uses it.
type Slot struct {
	key, name string
	to        Recipient
	channel   *channel // on which messages are expected, or nil; Inbox.mu guards it
}

// NewSlot returns a slot for which no messages are expected yet.
func NewSlot(key, name string, to Recipient) Slot { return Slot{key: key, name: name, to: to} }

// Listens reports whether the client listens for messages about a key. If so, those with the name
// of the slot go to its recipient from now on.
func (b *Inbox) Listens(s *Slot) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.channels[b.ownChannel(s.key)]; c == nil || !c.subscription.Live() {
		return false
	}
	b.expectLocked(s)
	return true
}

// Expect directs messages to the recipient, whether the client listens or not. A recipient that may
// be in a queue is always expected: what is granted to others is given back.
func (b *Inbox) Expect(s *Slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expectLocked(s)
}

// expectLocked is Expect, and returns the channel. b.mu is held.
func (b *Inbox) expectLocked(s *Slot) *channel {
	c := s.channel
	if c == nil {
		c = b.channelFor(s.key)
		c.expect(s)
	}
	c.usedAt = time.Now()
	return c
}

// ExpectIfKnown is Expect if the client has a channel for the key already. It comes before the
// request that may put the name into a queue: a message may be faster than the reply.
func (b *Inbox) ExpectIfKnown(s *Slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.channels[b.ownChannel(s.key)]; c != nil && s.channel == nil {
		c.expect(s)
	}
}

// Listen subscribes to the channel, unless that was done before, and wakes the recipient when the
// server has confirmed. It reports whether a confirmation can be expected.
func (b *Inbox) Listen(s *Slot) bool {
	b.mu.Lock()
	expected := s.channel != nil
	sub, fresh := b.expectLocked(s).subscribe()
	b.mu.Unlock()
	switch {
	case fresh:
		b.config.Subscribe(sub)
	case !expected && sub.Live(): // it became live after the recipient was refused and not queued
		s.to.Signal()
	}
	return !sub.Refused.Load()
}

// Forget stops directing messages to a recipient, whose wait is over. Most often there were none,
// and it costs nothing.
func (b *Inbox) Forget(s *Slot) {
	if !s.Expected() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Expected() {
		s.channel.stopExpecting(s)
	}
}

// Name returns the name under which the recipient waits.
func (s *Slot) Name() string { return s.name }

// Expected reports whether messages are directed to the recipient.
func (s *Slot) Expected() bool { return s.channel != nil }
