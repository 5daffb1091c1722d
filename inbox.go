package latchkey

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// A contended lock is handed over from client to client. An owner that is refused waits in a queue
// next to the lock. The script that releases the lock makes the first in the queue its owner, and
// tells the client of that owner on the client's own channel. So a change of owners costs two
// commands, however many wait, and follows the order in which the clients arrived.
//
// An owner is used for one wait and one turn, and never again. A message or command that comes
// late, or twice, names an owner that is already used, and can do no harm. tests/handover explores
// this protocol.

// inbox knows the recipients of a client that wait in queues on the server, and listens for messages about them.
type inbox struct {
	inboxConfig

	own     string      // the channel of this client, unless messages are sharded
	counted string      // '1' if the server counts all receivers of a message
	pollMS  string      // the poll ceiling, as sent
	used    atomic.Bool // there are channels, so messages may arrive

	mu       sync.Mutex
	channels map[string]*clientChannel
	giveBack map[string]func(key, name string) // by kind
}

// inboxConfig is what an inbox needs.
type inboxConfig struct {
	Client      string                     // its id
	Sharded     bool                       // each lock has a channel of its own, at the node of its slot
	Counts      bool                       // one server counts all receivers of a message
	PollCeiling time.Duration              // between two polls of a waiter that can expect no messages
	Subscribe   func(*pubsub.Subscription) // begins to listen, without waiting
}

func newInbox(c inboxConfig) *inbox {
	b := &inbox{
		inboxConfig: c,
		own:         "latchkey:{" + c.Client + "}",
		counted:     "0", // a node counts its own subscribers only
		pollMS:      script.MillisText(c.PollCeiling),
		channels:    map[string]*clientChannel{},
		giveBack:    map[string]func(key, name string){},
	}
	if c.Counts || c.Sharded {
		b.counted = "1"
	}
	return b
}

// calls is the kind of what the server offers in a call.
const calls = "call"

// register sets what is done if the server has given a lock, or offered something, to a name that nobody waits under.
// kind is the letter by which grants name the kind of lock, or calls. For a call, the function gets the entry of the
// name.
func (b *inbox) register(kind string, giveBack func(key, name string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveBack[kind] = giveBack
}

// unwanted gives back what a name got that nobody waits under.
func (b *inbox) unwanted(kind, key, name string) {
	b.mu.Lock()
	giveBack := b.giveBack[kind]
	b.mu.Unlock()
	if giveBack != nil {
		giveBack(key, name)
	}
}

// expected returns how many recipients are expected to receive messages.
func (b *inbox) expected() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.channels {
		n += len(c.waiting)
	}
	return n
}

// inUse reports whether messages may arrive for anybody.
func (b *inbox) inUse() bool { return b.used.Load() }

// channelOf returns the prefix and the suffix of the clients' channels for a key. The id of the
// client goes in between.
func (b *inbox) channelOf(key string) (prefix, suffix string) {
	if b.Sharded {
		return "latchkey:" + keyspace.Tag(key) + ":", ""
	}
	return "latchkey:{", "}"
}

// ownChannel is the channel of this client for a key.
func (b *inbox) ownChannel(key string) string {
	if b.Sharded {
		prefix, suffix := b.channelOf(key)
		return prefix + b.Client + suffix
	}
	return b.own
}

// counts is '1' for scripts if the server counts all receivers of a message.
func (b *inbox) counts() string { return b.counted }

// channelArgs appends what scripts need to know about the clients' channels: prefix, suffix, and
// whether the server counts all receivers.
func (b *inbox) channelArgs(to []string, key string) []string {
	prefix, suffix := b.channelOf(key)
	return append(to, prefix, suffix, b.counted)
}

// mustPoll reports whether a waiter can expect no messages about a key in that round.
func (b *inbox) mustPoll(key string, round int) bool {
	var s *pubsub.Subscription
	if b.inUse() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c := b.channels[b.ownChannel(key)]; c != nil {
			s = c.subscription
		}
	}
	return s.MustPoll(round)
}

// pollText returns the ms after which a waiter for a key polls again, for a script, or "" if it can expect messages.
func (b *inbox) pollText(key string, round int) string {
	if !b.mustPoll(key, round) {
		return ""
	}
	return b.pollMS
}

// unclaimed handles a message on a channel of this client to which nobody listens any more. The server still counts
// the client as listening there, so it may grant a lock to a poller, or to an owner whose entry was left behind.
func (b *inbox) unclaimed(channel, text string) {
	if !strings.HasPrefix(channel, "latchkey:") || !strings.Contains(channel, b.Client) {
		return
	}
	b.mu.Lock()
	c := b.channels[channel]
	b.mu.Unlock()
	if c == nil {
		c = &clientChannel{inbox: b, name: channel}
	}
	c.Message(text)
}
