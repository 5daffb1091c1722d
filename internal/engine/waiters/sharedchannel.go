package waiters

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// sharedChannel is the channel of a key that all waiters of a client share. It announces what
// nobody has been granted, such as free permits. A message on it makes the first of them try again;
// the others receive grants. List.mu guards usedAt.
type sharedChannel struct {
	list   *List
	key    string
	usedAt time.Time
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
	l.client.Notifier.Add(&pubsub.Subscription{Channel: line.PresenceChannel(names.Key), To: line.Presence{Of: s}})
	l.client.Notifier.Add(s)
}

// Message implements [pubsub.Subscriber].
func (h *sharedChannel) Message(string) { h.Reconnected() }

// Reconnected implements [pubsub.Subscriber].
func (h *sharedChannel) Reconnected() {
	l := h.list
	l.mu.Lock()
	defer l.mu.Unlock()
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
