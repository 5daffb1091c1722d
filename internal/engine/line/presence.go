package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// Clients of this library that wait for permits, or for a read/write lock, subscribe to a second
// channel of it. A client that subscribes to Redisson's channel only is a stranger. A message on
// the second channel announces that the next one on Redisson's is for strangers.

// PresenceChannel returns that second channel.
func PresenceChannel(key string) string { return "latchkey:" + keyspace.Tag(key) + ":waits" }

// Presence is the subscription to the second channel. It lasts as long as the one to the messages.
type Presence struct {
	Of           *pubsub.Subscription
	ForStrangers func() // leaves the next message to strangers
}

// Message implements [pubsub.Subscriber]. This client leaves the next message to strangers.
func (p Presence) Message(string) { p.ForStrangers() }

// Reconnected implements [pubsub.Subscriber].
func (Presence) Reconnected() {}

// Retire implements [pubsub.Subscriber].
func (p Presence) Retire(time.Duration) bool { return p.Of.Retired.Load() }
