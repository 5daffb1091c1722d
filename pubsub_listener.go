package latchkey

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// listener keeps one subscription connection. Its goroutine runs only while there
// are channels to listen to.
type listener struct {
	*notifier
	address string
	kick    chan struct{} // there is something to subscribe

	mu sync.Mutex // after notifier.mu
	// subs are by their channels. The keys a and {a} share one, and semaphores of both
	// kinds do. A slice that was handed out is never changed.
	subs   map[string][]*subscription
	ousted []*subscription // the node has ended them
	active bool
}

// link is a subscription connection that is up.
type link struct {
	conn   rueidis.DedicatedClient
	lost   <-chan error
	silent atomic.Int32 // beats sent since the last one was heard
	mute   atomic.Bool  // the server does not permit the beat
}

func newListener(n *notifier, address string) *listener {
	return &listener{
		notifier: n,
		address:  address,
		kick:     make(chan struct{}, 1),
		subs:     map[string][]*subscription{},
	}
}

func (l *listener) add(s *subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs[s.channel] = append(slices.Clone(l.subs[s.channel]), s)
	if !l.active {
		l.active = true
		l.running.Go(l.run)
	}
	nudge(l.kick)
}

// run keeps a link up for as long as there is something to listen to.
func (l *listener) run() {
	for pause := transport.FirstPause; ; pause = min(2*pause, transport.LongPause) {
		worked, err := l.listen()
		if worked {
			pause = transport.FirstPause
		}
		if err != nil {
			if pause == transport.FirstPause {
				l.reporter.log(noticeSubscription, l.address, slog.Any("error", err))
			}
			l.retire()
			l.scatter()
		}
		if l.idle() {
			return
		}
		if transport.Rest(context.Background(), l.closed, transport.Jitter(pause)) != nil {
			return
		}
	}
}

// idle ends the goroutine if nothing is left to do.
func (l *listener) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return true
	default:
	}
	l.active = len(l.subs) > 0
	return !l.active
}

// listen opens a link and serves it until it breaks (an error) or is no longer
// needed. It reports whether the link worked at all.
func (l *listener) listen() (worked bool, err error) {
	client := l.client()
	if client == nil {
		return false, errLink
	}
	conn, release := client.Dedicate()
	defer release()
	defer conn.Close()
	k := &link{conn: conn}
	k.lost = conn.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { l.onMessage(k, m.Channel) },
		OnSubscription: l.onSubscription,
	})
	defer l.unconfirm()
	if err := l.hearItself(k); err != nil {
		return false, err
	}
	return true, l.serve(k)
}

// serve is the loop of a link that is up.
func (l *listener) serve(k *link) error {
	beat, sweep := time.NewTicker(l.interval), time.NewTicker(subscriptionLinger/2)
	defer beat.Stop()
	defer sweep.Stop()
	for {
		l.moveOusted()
		if err := l.subscribeNew(k); err != nil {
			return err
		}
		select {
		case <-l.kick:
		case err := <-k.lost:
			return errors.Join(errLink, err)
		case <-beat.C:
			if k.silent.Load() >= missedBeats {
				return errDeaf
			}
			l.sender.Background(func() { l.beat(k) })
		case <-sweep.C:
			if left, err := l.sweep(k); err != nil || left == 0 {
				return err
			}
		case <-l.closed:
			return nil
		}
	}
}

// subscribeNew asks for every channel that has not been asked for on this link, or not
// by everybody: to ask again does no harm, and is confirmed again.
func (l *listener) subscribeNew(k *link) error {
	l.mu.Lock()
	var channels []string
	for channel, subs := range l.subs {
		fresh := false
		for _, s := range subs {
			fresh = fresh || s.asked != k
			s.asked = k
		}
		if fresh {
			channels = append(channels, channel)
		}
	}
	l.mu.Unlock()
	batch := subscribeBatch
	if l.sharded {
		batch = 1 // those of one command would have to share a slot
	}
	for len(channels) > 0 {
		some := channels[:min(len(channels), batch)]
		channels = channels[len(some):]
		if err := l.subscribe(k, some); err != nil {
			return err
		}
	}
	return nil
}

// subscribe returns when the server has confirmed, or an error if the link is no
// good. A server that refuses a batch for one of its channels is asked for each
// alone; one that refuses a channel leaves its waiters to poll.
func (l *listener) subscribe(k *link, channels []string) error {
	err := l.do(k, l.subscribeCommand(k, channels))
	switch {
	case err == nil && l.sharded:
		l.own(channels[0])
		return nil
	case transport.Classify(err) != transport.Refused:
		return err
	case l.sharded && l.redirect(channels[0], err):
		return nil
	case len(channels) == 1:
		l.reporter.log(noticeSubscribe, channels[0], slog.Any("error", err))
		return nil
	}
	for _, channel := range channels {
		if err := l.subscribe(k, []string{channel}); err != nil {
			return err
		}
	}
	return nil
}

func (l *listener) subscribeCommand(k *link, channels []string) rueidis.Completed {
	if l.sharded {
		return k.conn.B().Ssubscribe().Channel(channels...).Build()
	}
	return k.conn.B().Subscribe().Channel(channels...).Build()
}

func (l *listener) do(k *link, cmd rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.sender.Patience)
	defer cancel()
	return k.conn.Do(ctx, cmd).Error()
}

// sweep unsubscribes channels that nobody has waited on for a while, and returns
// how many are left.
func (l *listener) sweep(k *link) (left int, err error) {
	idle := l.retire()
	switch {
	case len(idle) == 0:
	case l.sharded:
		for _, channel := range idle {
			err = errors.Join(err, l.do(k, k.conn.B().Sunsubscribe().Channel(channel).Build()))
		}
	default:
		err = l.do(k, k.conn.B().Unsubscribe().Channel(idle...).Build())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.subs), err
}

// retire forgets the channels that nobody has waited on for a while, and returns
// them.
func (l *listener) retire() (idle []string) {
	for _, s := range l.snapshot() {
		if s.queue.retire(subscriptionLinger) && l.forget(s) && len(l.find(s.channel)) == 0 {
			idle = append(idle, s.channel)
		}
	}
	return idle
}

// forget removes a subscription, and reports whether it was there.
func (l *listener) forget(s *subscription) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	subs := l.subs[s.channel]
	i := slices.Index(subs, s)
	switch {
	case i < 0:
		return false
	case len(subs) == 1:
		delete(l.subs, s.channel)
	default:
		l.subs[s.channel] = slices.Delete(slices.Clone(subs), i, i+1)
	}
	return true
}

func (l *listener) snapshot() []*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*subscription, 0, len(l.subs))
	for _, subs := range l.subs {
		all = append(all, subs...)
	}
	return all
}

// hearItself subscribes to the beat. A server that does not permit it is trusted to
// tell when the connection breaks.
func (l *listener) hearItself(k *link) error {
	if l.sharded {
		return nil
	}
	err := l.do(k, k.conn.B().Subscribe().Channel(l.beatName).Build())
	if transport.Classify(err) == transport.Refused {
		l.reporter.log(noticeBeat, l.beatName, slog.Any("error", err))
		k.mute.Store(true)
		return nil
	}
	return err
}

// beat publishes on the private channel through the ordinary connection. A link
// can go deaf without an error, half open or tied to a server that is no longer
// the master; then the beat stays away. Sharded channels belong to a node, which
// says so when it gives them up; there an answer on the link itself will do.
func (l *listener) beat(k *link) {
	if k.mute.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.interval)
	defer cancel()
	k.silent.Add(1) // first, because the beat may be back before the answer
	if l.sharded {
		if k.conn.Do(ctx, k.conn.B().Ping().Build()).Error() == nil {
			k.silent.Store(0)
		}
		return
	}
	_, reply := l.sender.AskAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().Publish().Channel(l.beatName).Message("0").Build())
	})
	err := reply.Error()
	if transport.Classify(err) != transport.Answered {
		k.silent.Add(-1)
	}
	if transport.Classify(err) == transport.Refused {
		k.mute.Store(true)
	}
}

// onMessage runs in the reader of the link and must not block.
func (l *listener) onMessage(k *link, channel string) {
	if channel == l.beatName {
		k.silent.Store(0)
		return
	}
	for _, s := range l.find(channel) {
		s.queue.message()
	}
}

// onSubscription runs in the reader of the link and must not block. A node that
// gives a slot away ends the subscriptions of its channels by itself.
func (l *listener) onSubscription(e rueidis.PubSubSubscription) {
	begins := e.Kind == "subscribe" || e.Kind == "ssubscribe"
	for _, s := range l.find(e.Channel) {
		if begins {
			s.confirmed.Store(true)
			s.queue.reconnected()
		} else {
			s.lost()
			l.oust(s)
		}
	}
}

func (l *listener) find(channel string) []*subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs[channel]
}

// unconfirm wakes everybody at the end of a link.
func (l *listener) unconfirm() {
	for _, s := range l.snapshot() {
		s.lost()
	}
}
