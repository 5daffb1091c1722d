// Package pubsub has one connection for messages to each server that sends them, and the channels
// that waiters listen to.
package pubsub

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/transport"
)

const (
	// SubscriptionLinger is how long a channel counts as wanted after the last wait: subscribing
	// costs as much as a lock and an unlock.
	SubscriptionLinger = 2 * time.Second
	// subscribeBatch is how many channels are subscribed in one round trip.
	subscribeBatch = 500
	// missedBeats is how many beats may be missing before the link is given up.
	missedBeats = 2
	// uncountedLinks is how many links in succession are given up that the server does not count.
	uncountedLinks = 3
)

// ConfirmRounds is the number of refusals after which a waiter no longer counts on a subscription
// that the server has not confirmed.
const ConfirmRounds = 2

var (
	errNothingHeard = errors.New("latchkey: the subscription gets no messages")
	errElsewhere    = errors.New("latchkey: the subscription is on a different server than the commands")
	errCrowded      = errors.New("latchkey: too many channels that nobody wants")
	errLink         = errors.New("latchkey: the subscription connection broke")
)

// Subscriber handles the events of a channel. Its methods must not block.
type Subscriber interface {
	// Message is called for each message.
	Message(text string)
	// Reconnected is called when the subscription begins or ends: messages that were published in
	// between are lost.
	Reconnected()
	// Retire reports whether the subscription can end, because nobody has needed it for linger. It
	// is then forgotten.
	Retire(linger time.Duration) bool
}

// Subscription connects a channel to its listener.
type Subscription struct {
	Channel     string
	To          Subscriber
	Confirmed   atomic.Bool // the server has confirmed it on the current link
	Refused     atomic.Bool // the server has refused it
	Retired     atomic.Bool // nobody needs it any more
	requestedOn uint64      // number of the link on which it was requested, guarded by listener.mu
}

// Live reports whether messages are expected to arrive.
func (s *Subscription) Live() bool { return s != nil && s.Confirmed.Load() }

// MustPoll reports whether a waiter can expect no messages in that round.
func (s *Subscription) MustPoll(round int) bool {
	return !s.Live() && (round >= ConfirmRounds || s != nil && s.Refused.Load())
}

// lost marks the channel as not subscribed, and makes the waiter query the server.
func (s *Subscription) lost() {
	s.Confirmed.Store(false)
	s.To.Reconnected()
}

// Notifier receives the messages for all waiters of a client, over a dedicated connection to each
// server that sends them: one server in all, except for sharded messages of a cluster. A message is
// only a hint: a waiter that wakes up queries the server. Waiters also wake up when the
// subscription begins, when it ends, and when they poll, so a lost message never costs more than
// the poll ceiling.
type Notifier struct {
	sender   *transport.Sender
	reports  Reports
	BeatName string        // private channel on which classic listeners receive their own beats
	interval time.Duration // between two beats
	Sharded  bool
	Counts   bool // one server counts all receivers of a message
	closed   chan struct{}
	running  sync.WaitGroup
	links    atomic.Uint64 // opened so far
	// Unclaimed handles a message on a channel that is still subscribed, although nobody wants it
	// any more.
	Unclaimed func(channel, text string)

	mu        sync.Mutex
	listeners map[string]*listener // by the address of the node; "" for classic messages
	owners    map[uint16]string    // node of a slot, if known
}

// Reports has what is called when messages are missing. Waiters then poll.
type Reports struct {
	Lost           func(address string, err error) // a link broke
	BeatRefused    func(channel string, err error)
	ChannelRefused func(channel string, err error)
}

// New returns a notifier. id is that of the client, and interval the time between two beats.
func New(c *transport.Sender, r Reports, id string, interval time.Duration, sharded bool) *Notifier {
	return &Notifier{
		sender:    c,
		reports:   r,
		BeatName:  "latchkey:beat:" + id,
		interval:  interval,
		Sharded:   sharded,
		closed:    make(chan struct{}),
		listeners: map[string]*listener{},
		owners:    map[uint16]string{},
	}
}

// Add begins to listen, without waiting. The subscriber is called when the server has confirmed.
func (n *Notifier) Add(s *Subscription) {
	nodes := n.nodes()
	n.mu.Lock()
	defer n.mu.Unlock()
	if async.IsClosed(n.closed) {
		return
	}
	address := n.node(nodes, s.Channel)
	l := n.listeners[address]
	if l == nil {
		l = newListener(n, address)
		n.listeners[address] = l
	}
	l.listenTo(s)
}

// Close ends all listeners and waits for them.
func (n *Notifier) Close() {
	n.mu.Lock()
	close(n.closed)
	n.mu.Unlock()
	n.running.Wait()
}
