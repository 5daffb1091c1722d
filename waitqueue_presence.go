package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Clients of this library that wait for permits, or for a read/write lock, listen to a second channel
// of it, on which nothing is published. A client that listens to Redisson's channel and not to this one is a stranger.

// presenceChannel is that channel.
func presenceChannel(key string) string { return "latchkey:" + transport.HashTag(key) + ":waits" }

// presence is the subscription to it, which lasts as long as the one to the messages.
type presence struct{ of *subscription }

// message implements [subscriber].
func (presence) message(string) {}

// reconnected implements [subscriber].
func (presence) reconnected() {}

// retire implements [subscriber].
func (p presence) retire(time.Duration) bool { return p.of.retired.Load() }
