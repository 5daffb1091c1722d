package waiters

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// sharedChannel is the channel of a key that all waiters of a client share. It announces what
// nobody has been granted, such as permits that strangers release. A message on it makes the first
// of them try again; the others receive grants. List.mu guards usedAt and share.
type sharedChannel struct {
	list   *List
	key    string
	usedAt time.Time
	share  turns.Share
}

// listenShared subscribes to the shared channel of a waiter's key. l.mu is held.
func (l *List) listenShared(w *Waiter) {
	names := w.Ownership.Names
	if l.shared[names.Key] != nil {
		return
	}
	h := &sharedChannel{list: l, key: names.Key, usedAt: time.Now()}
	l.shared[names.Key] = h
	s := &pubsub.Subscription{Channel: names.Channel, To: h}
	l.client.Notifier.Add(&pubsub.Subscription{Channel: line.PresenceChannel(names.Key), To: line.Presence{Of: s, ForStrangers: h.forStrangers}})
	l.client.Notifier.Add(s)
}

// forStrangers notes that the next message is for strangers.
func (h *sharedChannel) forStrangers() {
	h.list.mu.Lock()
	defer h.list.mu.Unlock()
	h.share.ForStrangers++
}

// hadPermits counts an acquisition of this client that has waited.
func (l *List) hadPermits(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.shared[key]; h != nil {
		h.share.Count(1, 0)
	}
}

// Message implements [pubsub.Subscriber]. Strangers go first if the message is for them, or this
// client has had its share.
func (h *sharedChannel) Message(string) {
	h.list.mu.Lock()
	defer h.list.mu.Unlock()
	now := time.Now()
	h.share.With(1, now)
	switch {
	case !h.share.Concerns(true, now), h.share.Stands(now) == turns.Even:
		time.AfterFunc(turns.StrangerPause, h.tryNearest)
	default:
		h.wakeNearest()
	}
}

// Reconnected implements [pubsub.Subscriber].
func (h *sharedChannel) Reconnected() {
	h.list.mu.Lock()
	defer h.list.mu.Unlock()
	h.share.ForStrangers = 0
	h.wakeNearest()
}

// tryNearest is wakeNearest, after a pause.
func (h *sharedChannel) tryNearest() {
	h.list.mu.Lock()
	defer h.list.mu.Unlock()
	h.wakeNearest()
}

// wakeNearest makes those try that may have missed a grant, or receive none. List.mu is held.
func (h *sharedChannel) wakeNearest() {
	l := h.list
	for i, w := range nearest(l.byKey[h.key]) {
		if i == 0 || !w.Grantable || w.aside {
			l.wake(w)
		}
	}
}

// Retire implements [pubsub.Subscriber].
func (h *sharedChannel) Retire(linger time.Duration) bool {
	l := h.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[h.key] != nil {
		h.usedAt = time.Now()
	}
	if time.Since(h.usedAt) < linger {
		return false
	}
	delete(l.shared, h.key)
	return true
}
