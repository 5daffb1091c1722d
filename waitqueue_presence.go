package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Clients of this library that wait for permits, or for a read/write lock, subscribe to a second
// channel of it, on which nothing is published. A client that subscribes to Redisson's channel only
// is a stranger.

// presenceChannel returns that second channel.
func presenceChannel(key string) string { return "latchkey:" + transport.HashTag(key) + ":waits" }

// presence is the subscription to the second channel. It lasts as long as the one to the messages.
type presence struct{ of *subscription }

// message implements [subscriber].
func (presence) message(string) {}

// reconnected implements [subscriber].
func (presence) reconnected() {}

// retire implements [subscriber].
func (p presence) retire(time.Duration) bool { return p.of.retired.Load() }
