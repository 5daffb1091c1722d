package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A waking says which waiters of a client a message wakes.
type waking int

const (
	wakeOne waking = iota // the waiter that has waited longest: only one can get the lock
	wakeAll               // all waiters: readers share the lock
)

// pollAfter is how long a waiter relies on messages before it polls.
const pollAfter = time.Second

// wakeups has the subscriptions of a client. They last until ctx ends.
type wakeups struct {
	ctx   context.Context // ends with the client
	redis rueidis.Client

	mu       sync.Mutex
	channels map[string]*channel
}

func newWakeups(ctx context.Context, redis rueidis.Client) *wakeups {
	return &wakeups{ctx: ctx, redis: redis, channels: map[string]*channel{}}
}

func channelOf(key string) string { return "released:" + key }

// A channel carries the messages about one lock.
type channel struct {
	waking     waking
	subscribed chan struct{} // closed when the server has confirmed the subscription

	mu      sync.Mutex
	waiters []*waiter // the longest wait first
}

// A waiter waits for messages about one lock.
type waiter struct {
	channel *channel
	woken   chan struct{} // buffers one wake-up that comes while the waiter tries
}

// join returns a waiter that misses no message sent after join returns.
func (s *wakeups) join(ctx context.Context, key string, w waking) (*waiter, error) {
	ch := s.channel(key, w)
	select {
	case <-ch.subscribed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	one := &waiter{channel: ch, woken: make(chan struct{}, 1)}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.waiters = append(ch.waiters, one)
	return one, nil
}

func (s *wakeups) channel(key string, w waking) *channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[key]
	if ch == nil {
		ch = &channel{waking: w, subscribed: make(chan struct{})}
		s.channels[key] = ch
		go s.receive(key, ch)
	}
	return ch
}

func (s *wakeups) receive(key string, ch *channel) {
	var once sync.Once
	ctx := rueidis.WithOnSubscriptionHook(s.ctx, func(rueidis.PubSubSubscription) {
		once.Do(func() { close(ch.subscribed) })
	})
	subscribe := s.redis.B().Subscribe().Channel(channelOf(key)).Build()
	// An error ends the messages; waiters then poll.
	_ = s.redis.Receive(ctx, subscribe, func(rueidis.PubSubMessage) { ch.wake() })
}

func (ch *channel) wake() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for _, w := range ch.waiters {
		select {
		case w.woken <- struct{}{}:
		default:
		}
		if ch.waking == wakeOne {
			return
		}
	}
}

// wait returns when the waiter should try again.
func (w *waiter) wait(ctx context.Context) error {
	ticker := time.NewTicker(pollAfter)
	defer ticker.Stop()
	for {
		select {
		case <-w.woken:
			return nil
		case <-ticker.C:
			if w.channel.polls(w) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// polls reports whether a waiter tries without a message. If only one waiter can get the lock, only
// the first one polls.
func (ch *channel) polls(w *waiter) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.waking == wakeAll || ch.waiters[0] == w
}

func (w *waiter) leave() {
	ch := w.channel
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if i := slices.Index(ch.waiters, w); i >= 0 {
		ch.waiters = slices.Delete(ch.waiters, i, i+1)
	}
}
