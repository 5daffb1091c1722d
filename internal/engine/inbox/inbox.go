// Package inbox has the channel on which a client learns of what it waits for in queues on the
// server: that it was granted a lock, or has to query the server.
package inbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Inbox knows the recipients of a client that wait in queues on the server, and listens for
// messages about them.
//
// A contended lock is handed over from client to client. An owner that is refused waits in a queue
// next to the lock. The script that releases the lock makes the first in the queue its owner, and
// tells the client of that owner on the client's own channel. So a change of owners costs two
// commands, however many wait, and follows the order in which the clients arrived.
//
// An owner is used for one wait and one turn, and never again. A message or command that comes
// late, or twice, names an owner that is already used, and can do no harm. tests/handover explores
// this protocol.
type Inbox struct {
	config Config

	own    string      // the channel of this client, unless messages are sharded
	counts string      // '1' if the server counts all receivers of a message
	pollMS string      // the poll ceiling, as sent
	used   atomic.Bool // there are channels, so messages may arrive

	mu       sync.Mutex
	channels map[string]*channel
	giveBack map[string]func(key, name string) // by kind
}

// Config is what an inbox needs.
type Config struct {
	Client      string                     // its id
	Sharded     bool                       // each lock has a channel of its own, at the node of its slot
	Counts      bool                       // one server counts all receivers of a message
	PollCeiling time.Duration              // between two polls of a waiter that can expect no messages
	Subscribe   func(*pubsub.Subscription) // begins to listen, without waiting
}

// New returns an inbox without recipients.
func New(c Config) *Inbox {
	b := &Inbox{
		config:   c,
		own:      "latchkey:{" + c.Client + "}",
		counts:   "0", // a node counts its own subscribers only
		pollMS:   script.MillisText(c.PollCeiling),
		channels: map[string]*channel{},
		giveBack: map[string]func(key, name string){},
	}
	if c.Counts || c.Sharded {
		b.counts = "1"
	}
	return b
}

// Expected returns how many recipients are expected to receive messages.
func (b *Inbox) Expected() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.channels {
		n += len(c.waiting)
	}
	return n
}

// InUse reports whether messages may arrive for anybody.
func (b *Inbox) InUse() bool { return b.used.Load() }

// Channels returns the prefix and the suffix of the clients' channels for a key. The id of the
// client goes in between.
func (b *Inbox) Channels(key string) (prefix, suffix string) {
	if b.config.Sharded {
		return "latchkey:" + keyspace.Tag(key) + ":", ""
	}
	return "latchkey:{", "}"
}

// ownChannel is the channel of this client for a key.
func (b *Inbox) ownChannel(key string) string {
	if b.config.Sharded {
		prefix, suffix := b.Channels(key)
		return prefix + b.config.Client + suffix
	}
	return b.own
}

// Counted is '1' for scripts if the server counts all receivers of a message.
func (b *Inbox) Counted() string { return b.counts }

// ChannelArgs appends what scripts need to know about the clients' channels: prefix, suffix, and
// whether the server counts all receivers.
func (b *Inbox) ChannelArgs(to []string, key string) []string {
	prefix, suffix := b.Channels(key)
	return append(to, prefix, suffix, b.counts)
}

// MustPoll reports whether a waiter can expect no messages about a key in that round.
func (b *Inbox) MustPoll(key string, round int) bool {
	var s *pubsub.Subscription
	if b.InUse() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c := b.channels[b.ownChannel(key)]; c != nil {
			s = c.subscription
		}
	}
	return s.MustPoll(round)
}

// PollText returns the ms after which a waiter for a key polls again, for a script, or "" if it can
// expect messages.
func (b *Inbox) PollText(key string, round int) string {
	if !b.MustPoll(key, round) {
		return ""
	}
	return b.pollMS
}
