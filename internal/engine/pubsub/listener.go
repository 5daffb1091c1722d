package pubsub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// listener keeps one subscription connection. Its goroutine runs only while there
// are channels to listen to.
type listener struct {
	*Notifier
	address string
	signals chan struct{} // there is something to subscribe to

	uncounted atomic.Int32 // beats that the server did not count, on links that it had not counted before

	mu sync.Mutex
	// subs holds the subscriptions by channel. The keys a and {a} share a channel, and so do
	// semaphores of both kinds. A slice that find returned never changes.
	subs   map[string][]*Subscription
	ended  []*Subscription // ended by the node
	active bool
}

func newListener(n *Notifier, address string) *listener {
	return &listener{
		Notifier: n,
		address:  address,
		signals:  make(chan struct{}, 1),
		subs:     map[string][]*Subscription{},
	}
}

// run keeps a link up for as long as there are channels to listen to.
func (l *listener) run() {
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		lasted, err := l.listen()
		if lasted > retry.LongPause {
			pause = retry.FirstPause
		}
		if err != nil {
			if pause == retry.FirstPause {
				l.reports.Lost(l.address, err)
			}
			l.retire()
			l.moveAll()
		}
		if l.idle() {
			return
		}
		if retry.Rest(context.Background(), l.closed, retry.Jitter(pause)) != nil {
			return
		}
	}
}

// idle ends the goroutine if there is nothing left to do.
func (l *listener) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if async.IsClosed(l.closed) {
		return true
	}
	l.active = len(l.subs) > 0
	return !l.active
}

// listen keeps links up, one after the other, until one breaks (an error) or none is needed any
// more. It returns how long the last one was up.
func (l *listener) listen() (lasted time.Duration, err error) {
	var k *link
	for {
		if k, err = l.open(k); err != nil {
			return 0, err
		}
		if err = l.serve(k); !errors.Is(err, errCrowded) {
			l.end(k)
			return time.Since(k.openedAt), err
		}
	}
}

// serve is the loop of a link that is up.
func (l *listener) serve(k *link) error {
	beat, sweep := time.NewTicker(l.interval), time.NewTicker(SubscriptionLinger/2)
	defer beat.Stop()
	defer sweep.Stop()
	if l.Counts { // at once, so that the link is known to be counted even if the master changes soon
		l.sender.Background(func() { l.beat(k) })
	}
	for {
		if k.elsewhere.Load() {
			return errElsewhere
		}
		l.moveEnded()
		if err := l.subscribeNew(k); err != nil {
			return err
		}
		select {
		case <-l.signals:
		case err := <-k.lost:
			return fmt.Errorf("%w: %w", errLink, err)
		case <-beat.C:
			if k.unheardBeats.Load() >= missedBeats {
				return errNothingHeard
			}
			l.sender.Background(func() { l.beat(k) })
		case <-sweep.C:
			switch remaining := l.sweep(k); {
			case remaining == 0:
				return nil
			case k.crowded(remaining, l.interval):
				return errCrowded
			}
		case <-l.closed:
			return nil
		}
	}
}

// subscribeBeat subscribes to the beat. If the server does not permit it, the listener relies on
// the connection to report its end.
func (l *listener) subscribeBeat(k *link) error {
	if l.Sharded {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.sender.Patience)
	defer cancel()
	err := k.conn.Do(ctx, k.conn.B().Subscribe().Channel(l.BeatName).Build()).Error()
	if outcome.Declined(err) {
		l.reports.BeatRefused(l.BeatName, err)
		k.beatRefused.Store(true)
		return nil
	}
	return err
}

// beat publishes on the private channel through the ordinary connection. A link can lose messages
// without an error, if it is half open or leads to a server that is no longer the master; then
// beats are missing. Sharded channels belong to a node, which ends its subscriptions when it gives
// a slot away. For them a reply on the link itself is enough, together with a check which node is
// the master.
func (l *listener) beat(k *link) {
	if k.beatRefused.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.interval)
	defer cancel()
	k.unheardBeats.Add(1) // first, because the beat may arrive before the answer
	if l.Sharded {
		if k.conn.Do(ctx, k.conn.B().Ping().Build()).NonRedisError() == nil { // a refusal is an answer too
			k.unheardBeats.Store(0)
		}
		l.lookForMaster(ctx, k)
		return
	}
	_, reply := l.sender.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().Publish().Channel(l.BeatName).Message("0").Build())
	})
	heard, err := reply.AsInt64()
	if l.Counts && err == nil {
		l.recount(k, heard)
	}
	if outcome.Classify(err) != outcome.Answered {
		k.unheardBeats.Add(-1)
	}
	if outcome.Classify(err) == outcome.Refused {
		k.beatRefused.Store(true)
	}
}

// recount records how many subscribers the server that receives the commands counted for a beat. If
// it counts nobody, the link leads to another server. That may be a former master, which now
// replicates from the new one: the link receives all messages, but the new master sees no
// subscriber, and hands nothing over. Then the link is given up at once. A server that has never
// counted a link is trusted after some of them: it may count nobody.
func (l *listener) recount(k *link, heard int64) {
	switch {
	case heard > 0:
		k.counted.Store(true)
		l.uncounted.Store(0)
	case k.counted.Load(), l.uncounted.Add(1) <= uncountedLinks:
		l.giveUp(k)
	}
}

// giveUp makes the listener open a new link, to the current master.
func (l *listener) giveUp(k *link) {
	k.elsewhere.Store(true)
	async.Signal(l.signals)
}
