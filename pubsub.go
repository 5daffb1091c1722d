package latchkey

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

const (
	// subscriptionLinger is how long a channel stays subscribed that nobody waits
	// on: subscribing costs as much as a lock and an unlock.
	subscriptionLinger = 2 * time.Second
	// subscribeBatch is how many channels go into one SUBSCRIBE.
	subscribeBatch = 500
	// missedBeats is how many beats may stay away before the link is given up.
	missedBeats = 2
)

var (
	errNothingHeard = errors.New("latchkey: the subscription gets no messages")
	errElsewhere    = errors.New("latchkey: the subscription is at another server than the one that commands go to")
	errLink         = errors.New("latchkey: the subscription connection broke")
)

// subscriber is told what happens on a channel. Its methods must not block.
type subscriber interface {
	// message is called for each message.
	message(text string)
	// reconnected is called when the subscription begins or ends: what was published in between
	// is lost.
	reconnected()
	// retire reports whether the subscription can go, because nobody has needed it for that long.
	// It is then forgotten.
	retire(linger time.Duration) bool
}

// subscription connects a channel to its listener.
type subscription struct {
	channel   string
	to        subscriber
	confirmed atomic.Bool // the server has confirmed it on the current link
	refused   atomic.Bool // the server has refused it
	retired   atomic.Bool // nobody needs it any more
	asked     *link       // the link on which it was asked for, guarded by listener.mu
}

// live reports whether messages are expected to arrive.
func (s *subscription) live() bool { return s != nil && s.confirmed.Load() }

// lost marks the channel as not listened to, and has the waiter look for itself.
func (s *subscription) lost() {
	s.confirmed.Store(false)
	s.to.reconnected()
}

// notifier receives the messages of all waiters of a client, over one connection
// of its own to each server that sends them: one in all, except for sharded
// messages of a cluster. A message is a hint and nothing else: a waiter that is woken
// asks the server. Waiters are also woken when the subscription begins, when it
// ends, and by their own polling, so that no lost message costs more than the poll
// ceiling.
type notifier struct {
	sender   *transport.Sender
	reporter *reporter
	beatName string        // private channel on which classic listeners hear themselves
	interval time.Duration // between two beats
	sharded  bool
	counts   bool // one server counts all who hear a message
	closed   chan struct{}
	running  sync.WaitGroup

	mu        sync.Mutex
	listeners map[string]*listener // by the address of the node; "" for classic messages
	owners    map[uint16]string    // node of a slot, as far as known
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

// add starts to listen, without waiting. The subscriber is told when the server has confirmed.
func (n *notifier) add(s *subscription) {
	nodes := n.nodes()
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
		return
	default:
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
