package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// Clients of this library that wait for permits, or for a read/write lock, subscribe to a second
// channel of it. A client that subscribes to Redisson's channel only is a stranger. A message on the second channel
// announces that the next one on Redisson's is for strangers.

// presenceChannel returns that second channel.
func presenceChannel(key string) string { return "latchkey:" + keyspace.Tag(key) + ":waits" }

// presence is the subscription to the second channel. It lasts as long as the one to the messages.
type presence struct {
	of    *pubsub.Subscription
	queue *waitQueue // or nil
}

// Message implements [pubsub.Subscriber].
func (p presence) Message(string) {
	if p.queue != nil {
		p.queue.leaveNextToStrangers()
	}
}

// Reconnected implements [pubsub.Subscriber].
func (presence) Reconnected() {}

// Retire implements [pubsub.Subscriber].
func (p presence) Retire(time.Duration) bool { return p.of.Retired.Load() }
