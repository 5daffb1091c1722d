package latchkey

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/transport"
)

const (
	// subscriptionLinger is how long a channel counts as wanted after the last wait: subscribing costs as much
	// as a lock and an unlock.
	subscriptionLinger = 2 * time.Second
	// subscribeBatch is how many channels are subscribed in one round trip.
	subscribeBatch = 500
	// missedBeats is how many beats may be missing before the link is given up.
	missedBeats = 2
	// uncountedLinks is how many links in succession are given up that the server does not count.
	uncountedLinks = 3
)

var (
	errNothingHeard = errors.New("latchkey: the subscription gets no messages")
	errElsewhere    = errors.New("latchkey: the subscription is on a different server than the commands")
	errCrowded      = errors.New("latchkey: too many channels that nobody wants")
	errLink         = errors.New("latchkey: the subscription connection broke")
)

// subscriber handles the events of a channel. Its methods must not block.
type subscriber interface {
	// message is called for each message.
	message(text string)
	// reconnected is called when the subscription begins or ends: messages that were published in between are
	// lost.
	reconnected()
	// retire reports whether the subscription can end, because nobody has needed it for linger. It is then
	// forgotten.
	retire(linger time.Duration) bool
}

// subscription connects a channel to its listener.
type subscription struct {
	channel     string
	to          subscriber
	confirmed   atomic.Bool // the server has confirmed it on the current link
	refused     atomic.Bool // the server has refused it
	retired     atomic.Bool // nobody needs it any more
	requestedOn uint64      // number of the link on which it was requested, guarded by listener.mu
}

// live reports whether messages are expected to arrive.
func (s *subscription) live() bool { return s != nil && s.confirmed.Load() }

// mustPoll reports whether a waiter can expect no messages in that round.
func (s *subscription) mustPoll(round int) bool {
	return !s.live() && (round >= confirmRounds || s != nil && s.refused.Load())
}

// lost marks the channel as not subscribed, and makes the waiter query the server.
func (s *subscription) lost() {
	s.confirmed.Store(false)
	s.to.reconnected()
}

// notifier receives the messages for all waiters of a client, over a dedicated connection to each server that
// sends them: one server in all, except for sharded messages of a cluster. A message is only a hint: a waiter
// that wakes up queries the server. Waiters also wake up when the subscription begins, when it ends, and when
// they poll, so a lost message never costs more than the poll ceiling.
type notifier struct {
	sender   *transport.Sender
	reporter *reporter
	beatName string        // private channel on which classic listeners receive their own beats
	interval time.Duration // between two beats
	sharded  bool
	counts   bool // one server counts all receivers of a message
	closed   chan struct{}
	running  sync.WaitGroup
	links    atomic.Uint64 // opened so far
	// unclaimed handles a message on a channel that is still subscribed, although nobody wants it any more.
	unclaimed func(channel, text string)

	mu        sync.Mutex
	listeners map[string]*listener // by the address of the node; "" for classic messages
	owners    map[uint16]string    // node of a slot, if known
}

func newNotifier(c *transport.Sender, r *reporter, id string, interval time.Duration, sharded bool) *notifier {
	return &notifier{
		sender:    c,
		reporter:  r,
		beatName:  "latchkey:beat:" + id,
		interval:  interval,
		sharded:   sharded,
		closed:    make(chan struct{}),
		listeners: map[string]*listener{},
		owners:    map[uint16]string{},
	}
}

// add begins to listen, without waiting. The subscriber is called when the server has confirmed.
func (n *notifier) add(s *subscription) {
	nodes := n.nodes()
	n.mu.Lock()
	defer n.mu.Unlock()
	if async.IsClosed(n.closed) {
		return
	}
	address := n.node(nodes, s.channel)
	l := n.listeners[address]
	if l == nil {
		l = newListener(n, address)
		n.listeners[address] = l
	}
	l.add(s)
}

// close ends all listeners and waits for them.
func (n *notifier) close() {
	n.mu.Lock()
	close(n.closed)
	n.mu.Unlock()
	n.running.Wait()
}
