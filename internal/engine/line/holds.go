package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// Two things wake the front of a line: the end of a hold of this client, and messages from
// others. A release of this client also publishes a message, which must not wake the front a second
// time.

// countHold notes that a hold of this client has begun, and returns how many times the hold may be passed on.
// busy says that the key is busy now. shard.mu is held.
func (q *Line) countHold(busy bool) (passes int) {
	q.blocking++
	q.Whole().strangers.weHold()
	if busy {
		q.answer = lastAnswer{err: fault.ErrNotAcquired}
	}
	q.drain()
	return q.passesOfTurn()
}

// isHeld reports whether a hold of this client keeps those in the line out. Those in a shared line are readers,
// and other readers do not keep them out. shard.mu is held.
func (q *Line) isHeld() bool {
	whole := q.Whole()
	exclusive := whole.exclusive().held > 0
	if l := whole.lines.Load(); l != nil && q == l.shared {
		return exclusive
	}
	return exclusive || whole.held > 0
}

// releaseBegins is called before a release is sent. The message of the release must not wake the
// front, because the end of the hold does. releaseBegins reports whether this client will receive
// that message at all. shard.mu is held.
func (q *Line) releaseBegins() bool {
	if !q.sub.Live() {
		return false
	}
	q.echoes++
	return true
}

// endHold ends one hold and its use of the queue. shard.mu is held.
//
// noEcho means that ReleaseBegins counted a message that was never published. blocked means that the
// hold kept everybody from the front until now.
//
// next is for the next waiter in front, or nil. It is returned as left if nobody waits. used
// reports whether the line has other users: their front is to be woken if others may hold the
// key now.
func (q *Line) endHold(noEcho, blocked bool, next Place) (left Place, used bool) {
	whole := q.Whole()
	defer whole.endUse()
	if noEcho && q.echoes > 0 {
		q.echoes--
	}
	if blocked {
		next = q.unblock(next)
	}
	return next, whole.users > 1
}

// unblock counts one hold less that keeps everybody from the front. shard.mu is held.
func (q *Line) unblock(next Place) (left Place) {
	q.blocking--
	if q.blocking > 0 || q.busy {
		return next // nobody may come to the front yet, or the one in front has an owner already
	}
	q.next()
	return q.leaveTo(next)
}

// Subscribe is called when another owner turned out to hold the key. From then on the front relies
// on messages. The line subscribes once, and subscribes to presentOn to show that it does.
func (q *Line) Subscribe(n *pubsub.Notifier, channel string, presentOn ...string) {
	q = q.Whole()
	q.shard.mu.Lock()
	if q.sub != nil {
		q.shard.mu.Unlock()
		return
	}
	s := &pubsub.Subscription{Channel: channel, To: q}
	q.sub = s
	q.shard.mu.Unlock()
	for _, each := range presentOn { // first, so that this client never looks like a stranger
		n.Add(&pubsub.Subscription{Channel: each, To: Presence{s, q}})
	}
	n.Add(s)
}

// MustPoll reports whether a waiter can expect no messages in that round.
func (q *Line) MustPoll(round int) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.Whole().sub.MustPoll(round)
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
	now := time.Now()
	if q.strangers.takesTurns && text == strangersFirst {
		q.letStrangersFirst()
		q.shard.mu.Unlock()
		return
	}
	if !q.share.concerns(q.users > 0, now) {
		q.shard.mu.Unlock()
		return
	}
	letThemFirst := q.share.stands(now) == Even
	own := q.echoes > 0
	if own {
		q.echoes--
	}
	waits := !own && q.letStrangerGoFirst()
	q.shard.mu.Unlock()
	switch {
	case letThemFirst:
		time.AfterFunc(strangerPause, q.WakeFronts)
	case !own && !waits:
		q.WakeFronts()
	}
}

// Reconnected implements [pubsub.Subscriber]. The front has to make an attempt.
func (q *Line) Reconnected() {
	q.shard.mu.Lock()
	q.echoes, q.share.forStrangers = 0, 0
	q.shard.mu.Unlock()
	q.Signal()
}
