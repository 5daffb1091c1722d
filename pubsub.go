package latchkey

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// subscriptionLinger is how long a channel stays subscribed that nobody waits
	// on: subscribing costs as much as a lock and an unlock.
	subscriptionLinger = 2 * time.Second
	// subscribeBatch is how many channels go into one SUBSCRIBE.
	subscribeBatch = 500
	// missedBeats is how many beats may stay away before the link counts as deaf.
	missedBeats = 2
)

var errDeaf = errors.New("latchkey: the subscription connection hears nothing")

// subscription connects a channel to the gate that waits on it.
type subscription struct {
	channel   string
	gate      *gate
	confirmed atomic.Bool // the server has confirmed it on the current link
	asked     *link       // the link on which it was asked for; the notifier's own
}

// live reports whether messages are expected to arrive.
func (s *subscription) live() bool { return s != nil && s.confirmed.Load() }

// notifier receives the messages of all waiters of a client over one connection
// of its own. A message is a hint and nothing else: whoever is woken asks the
// server. Waiters are also woken when the subscription begins, when it ends, and
// by their own polling, so that no lost message costs more than the poll ceiling.
//
// Its goroutine runs only while there are channels to listen to.
type notifier struct {
	caller   *caller
	log      *slog.Logger
	beatName string        // private channel on which the notifier hears itself
	interval time.Duration // between two beats
	kick     chan struct{} // there is something to subscribe
	closed   chan struct{}

	mu      sync.Mutex
	subs    map[string]*subscription
	running sync.WaitGroup
	active  bool
}

// link is one subscription connection.
type link struct {
	conn   rueidis.DedicatedClient
	lost   <-chan error
	silent atomic.Int32 // beats sent since the last one was heard
	mute   atomic.Bool  // the server does not permit the beat
}

func newNotifier(c *caller, log *slog.Logger, id string, interval time.Duration) *notifier {
	return &notifier{
		caller:   c,
		log:      log,
		beatName: "latchkey:beat:" + id,
		interval: interval,
		kick:     make(chan struct{}, 1),
		closed:   make(chan struct{}),
		subs:     map[string]*subscription{},
	}
}

// add starts to listen for a gate, without waiting. The gate is woken when the
// server has confirmed.
func (n *notifier) add(s *subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
		return
	default:
	}
	n.subs[s.channel] = s
	if !n.active {
		n.active = true
		n.running.Go(n.run)
	}
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// run keeps a link up for as long as there is something to listen to.
func (n *notifier) run() {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		heard, err := n.listen()
		if err == nil && n.rest() {
			return
		}
		if heard {
			pause = firstPause
		}
		if err != nil {
			n.log.Warn("latchkey: subscription lost, waiters poll until it is back", "error", err)
		}
		if rest(context.Background(), n.closed, jitter(pause)) != nil {
			return
		}
	}
}

// rest ends the goroutine if nothing is left to do.
func (n *notifier) rest() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
		return true
	default:
	}
	n.active = len(n.subs) > 0
	return !n.active
}

// listen opens a link and serves it until it breaks (an error) or is no longer
// needed. It reports whether the link worked at all.
func (n *notifier) listen() (worked bool, err error) {
	conn, release := n.caller.client.Dedicate()
	defer release()
	defer conn.Close()
	l := &link{conn: conn}
	l.lost = conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { n.onMessage(l, m.Channel) },
		OnSubscription: n.onSubscription,
	})
	defer n.unconfirm()
	if err := n.subscribe(l, []string{n.beatName}); err != nil && judge(err) != refused {
		return false, err
	}
	return true, n.serve(l)
}

// serve is the loop of a link that is up.
func (n *notifier) serve(l *link) error {
	beat, sweep := time.NewTicker(n.interval), time.NewTicker(subscriptionLinger/2)
	defer beat.Stop()
	defer sweep.Stop()
	for {
		if err := n.subscribeNew(l); err != nil {
			return err
		}
		select {
		case <-n.kick:
		case err := <-l.lost:
			return errors.Join(errDeaf, err)
		case <-beat.C:
			if l.silent.Load() >= missedBeats {
				return errDeaf
			}
			n.caller.sending.Go(func() { n.beat(l) })
		case <-sweep.C:
			if left, err := n.sweep(l); err != nil || left == 0 {
				return err
			}
		case <-n.closed:
			return nil
		}
	}
}

// subscribeNew asks for every channel that has not been asked for on this link.
func (n *notifier) subscribeNew(l *link) error {
	n.mu.Lock()
	var channels []string
	for _, s := range n.subs {
		if s.asked != l {
			s.asked = l
			channels = append(channels, s.channel)
		}
	}
	n.mu.Unlock()
	for len(channels) > 0 {
		batch := channels[:min(len(channels), subscribeBatch)]
		channels = channels[len(batch):]
		if err := n.subscribe(l, batch); err != nil && judge(err) != refused {
			return err
		}
	}
	return nil
}

// subscribe returns when the server has confirmed. A server that refuses a batch
// for one of its channels is asked for each alone.
func (n *notifier) subscribe(l *link, channels []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), n.caller.patience)
	defer cancel()
	err := l.conn.Do(ctx, l.conn.B().Subscribe().Channel(channels...).Build()).Error()
	if judge(err) != refused {
		return err
	}
	if len(channels) == 1 {
		n.log.Warn("latchkey: the server refuses a subscription, waiters poll", "channel", channels[0], "error", err)
		l.mute.Store(l.mute.Load() || channels[0] == n.beatName)
		return err
	}
	for _, channel := range channels {
		if err := n.subscribe(l, []string{channel}); err != nil && judge(err) != refused {
			return err
		}
	}
	return nil
}

// sweep unsubscribes channels that nobody has waited on for a while, and returns
// how many are left.
func (n *notifier) sweep(l *link) (left int, err error) {
	var idle []string
	for _, s := range n.snapshot() {
		if s.gate.retire(subscriptionLinger) && n.forget(s) {
			idle = append(idle, s.channel)
		}
	}
	if len(idle) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), n.caller.patience)
		defer cancel()
		err = l.conn.Do(ctx, l.conn.B().Unsubscribe().Channel(idle...).Build()).Error()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.subs), err
}

// forget removes a subscription, unless a newer one has taken its place.
func (n *notifier) forget(s *subscription) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs[s.channel] != s {
		return false
	}
	delete(n.subs, s.channel)
	return true
}

func (n *notifier) snapshot() []*subscription {
	n.mu.Lock()
	defer n.mu.Unlock()
	subs := make([]*subscription, 0, len(n.subs))
	for _, s := range n.subs {
		subs = append(subs, s)
	}
	return subs
}

// beat publishes on the private channel through the ordinary connection. A link
// can go deaf without an error, half open or tied to a server that is no longer
// the master; then the beat stays away.
func (n *notifier) beat(l *link) {
	if l.mute.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.interval)
	defer cancel()
	client := n.caller.client
	l.silent.Add(1) // first, because the beat may be back before the answer
	err := n.caller.send(ctx, func(ctx context.Context) rueidis.RedisResult {
		return client.Do(ctx, client.B().Publish().Channel(n.beatName).Message("0").Build())
	}).Error()
	if judge(err) != answered {
		l.silent.Add(-1)
	}
	if judge(err) == refused {
		l.mute.Store(true)
	}
}

// onMessage runs in the reader of the link and must not block.
func (n *notifier) onMessage(l *link, channel string) {
	if channel == n.beatName {
		l.silent.Store(0)
		return
	}
	if s := n.find(channel); s != nil {
		s.gate.message()
	}
}

// onSubscription runs in the reader of the link and must not block.
func (n *notifier) onSubscription(e rueidis.PubSubSubscription) {
	s := n.find(e.Channel)
	if s == nil {
		return
	}
	s.confirmed.Store(e.Kind == "subscribe")
	s.gate.reconnected()
}

func (n *notifier) find(channel string) *subscription {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.subs[channel]
}

// unconfirm wakes everybody at the end of a link.
func (n *notifier) unconfirm() {
	for _, s := range n.snapshot() {
		s.confirmed.Store(false)
		s.gate.reconnected()
	}
}

// close ends the goroutine and waits for it.
func (n *notifier) close() {
	n.mu.Lock()
	close(n.closed)
	n.mu.Unlock()
	n.running.Wait()
}
