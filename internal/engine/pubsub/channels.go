package pubsub

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// This file manages the channels of a listener: they are subscribed when lines need them, and
// forgotten when nobody has waited on them for a while.

// listenTo adds a subscription, and starts the goroutine of the listener if necessary.
func (l *listener) listenTo(s *Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs[s.Channel] = append(slices.Clone(l.subs[s.Channel]), s)
	if !l.active {
		l.active = true
		l.running.Go(l.run)
	}
	async.Signal(l.signals)
}

// subscribeNew subscribes to every channel that has a subscription not yet requested on this link.
// To subscribe again does no harm: the server confirms it again.
func (l *listener) subscribeNew(k *link) error {
	l.mu.Lock()
	var channels []string
	for channel, subs := range l.subs {
		fresh := false
		for _, s := range subs {
			fresh = fresh || s.requestedOn != k.number
			s.requestedOn = k.number
		}
		if fresh {
			channels = append(channels, channel)
			delete(k.unwanted, channel)
		}
	}
	l.mu.Unlock()
	for len(channels) > 0 {
		some := channels[:min(len(channels), subscribeBatch)]
		channels = channels[len(some):]
		if err := l.subscribe(k, some); err != nil {
			return err
		}
	}
	return nil
}

// subscribe returns when the server has confirmed or refused each channel, or returns an error if
// the link is unusable. Each channel has a command of its own, because a server may refuse some of
// them, and sharded channels may have different slots. If the server refuses a channel, the waiters
// poll.
func (l *listener) subscribe(k *link, channels []string) error {
	commands := make([]rueidis.Completed, len(channels))
	for i, channel := range channels {
		commands[i] = l.subscribeCommand(k, channel)
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.sender.Patience)
	defer cancel()
	for i, result := range k.conn.DoMulti(ctx, commands...) {
		channel, err := channels[i], result.Error()
		switch {
		case err == nil && l.Sharded:
			l.subscribed(channel)
		case err == nil:
		case l.Sharded && l.redirect(channel, err):
		case !outcome.Declined(err):
			return err
		default:
			l.refuse(channel, err)
		}
	}
	return nil
}

func (l *listener) subscribeCommand(k *link, channel string) rueidis.Completed {
	if l.Sharded {
		return k.conn.B().Ssubscribe().Channel(channel).Build()
	}
	return k.conn.B().Subscribe().Channel(channel).Build()
}

// refuse makes the waiters of a channel poll.
func (l *listener) refuse(channel string, err error) {
	l.reports.ChannelRefused(channel, err)
	for _, s := range l.find(channel) {
		s.Refused.Store(true)
		s.lost()
	}
}

// onMessage runs in the reader of the link, and must not block.
func (l *listener) onMessage(k *link, channel, text string) {
	if channel == l.BeatName {
		k.unheardBeats.Store(0)
		return
	}
	subs := l.find(channel)
	for _, s := range subs {
		s.To.Message(text)
	}
	if len(subs) == 0 && l.Unclaimed != nil {
		l.Unclaimed(channel, text)
	}
}

// onSubscription runs in the reader of the link, and must not block. A node that gives a slot away
// also ends the subscriptions of its channels.
func (l *listener) onSubscription(e rueidis.PubSubSubscription) {
	begins := e.Kind == "subscribe" || e.Kind == "ssubscribe"
	for _, s := range l.find(e.Channel) {
		if begins {
			s.Confirmed.Store(true)
			s.To.Reconnected()
		} else {
			s.lost()
			l.unsubscribed(s)
		}
	}
}

// sweep notes which channels nobody has waited on for a while, and returns how many others there
// are.
func (l *listener) sweep(k *link) (wanted int) {
	for _, channel := range l.retire() {
		k.unwanted[channel] = struct{}{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.subs)
}

// retire forgets the channels that nobody has waited on for a while, and returns them.
func (l *listener) retire() (idle []string) {
	for _, s := range l.snapshot() {
		if !s.To.Retire(SubscriptionLinger) {
			continue
		}
		s.Retired.Store(true)
		if l.forget(s) && len(l.find(s.Channel)) == 0 {
			idle = append(idle, s.Channel)
		}
	}
	return idle
}

// forget removes a subscription, and reports whether it was there.
func (l *listener) forget(s *Subscription) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	subs := l.subs[s.Channel]
	i := slices.Index(subs, s)
	switch {
	case i < 0:
		return false
	case len(subs) == 1:
		delete(l.subs, s.Channel)
	default:
		l.subs[s.Channel] = slices.Delete(slices.Clone(subs), i, i+1)
	}
	return true
}

func (l *listener) find(channel string) []*Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subs[channel]
}

func (l *listener) snapshot() []*Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Subscription, 0, len(l.subs))
	for _, subs := range l.subs {
		all = append(all, subs...)
	}
	return all
}
