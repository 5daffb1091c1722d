package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// Two things wake the front of a line: the end of a hold of this client, and messages from
// others. A release of this client also publishes a message, which must not wake the front a second
// time.

// Subscribe is called when another owner turned out to hold the key. From then on the front relies
// on messages. The line subscribes once, and subscribes to presentOn to show that it does.
func (q *Line) Subscribe(n *pubsub.Notifier, channel string, presentOn ...string) {
	q = q.whole()
	q.shard.mu.Lock()
	if q.sub != nil {
		q.shard.mu.Unlock()
		return
	}
	s := &pubsub.Subscription{Channel: channel, To: q}
	q.sub = s
	q.shard.mu.Unlock()
	for _, each := range presentOn { // first, so that this client never looks like a stranger
		n.Add(&pubsub.Subscription{Channel: each, To: Presence{s, q.forStrangers}})
	}
	n.Add(s)
}

// MustPoll reports whether a waiter can expect no messages in that round.
func (q *Line) MustPoll(round int) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.whole().sub.MustPoll(round)
}

// RelyFor sets how long the subscription is needed. After that, the key is wanted only by this
// client and by clients that learn of a release in another way.
func (q *Line) RelyFor(d time.Duration) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.reliedUntil = time.Now().Add(d)
}

// Message implements [pubsub.Subscriber].
func (q *Line) Message(text string) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.strangers.TakesTurns && text == strangersFirst {
		q.letStrangersFirst()
		return
	}
	now := time.Now()
	if !q.share.Concerns(q.users > 0, now) {
		return
	}
	own := q.echoes > 0
	if own {
		q.echoes--
	}
	waits := !own && q.letStrangerGoFirst()
	switch {
	case q.share.Stands(now) == turns.Even:
		time.AfterFunc(turns.StrangerPause, q.WakeFronts)
	case !own && !waits:
		q.wake(false)
	}
}

// Reconnected implements [pubsub.Subscriber]. The front has to make an attempt.
func (q *Line) Reconnected() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.echoes, q.share.ForStrangers = 0, 0
	q.wake(true)
}

// DoNotLinger notes that nobody will use this line again.
func (q *Line) DoNotLinger() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.noLinger = true
}

// Retire implements [pubsub.Subscriber]. It drops the line if it has been unused for that long, and
// the subscription alone if the front has not relied on it for that long.
func (q *Line) Retire(linger time.Duration) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.sub == nil {
		return true
	}
	if q.users > 0 && !q.reliedUntil.IsZero() && time.Since(q.reliedUntil) > 0 {
		q.sub, q.reliedUntil = nil, time.Time{}
		return true
	}
	if q.users > 0 || !q.noLinger && time.Since(q.retired) < linger {
		return false
	}
	q.drop()
	return true
}
