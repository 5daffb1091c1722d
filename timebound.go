package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// timeBound is a duration that counts from a stamp: the longest that a hold may last ([MaxHold]),
// or the shortest that a lock stays taken ([AtLeast]). Most holds have none, which is a nil
// timeBound: it allows everything and requires nothing.
type timeBound struct {
	d    time.Duration
	from transport.Stamp
}

// newTimeBound returns a bound, or nil if it is 0.
func newTimeBound(d time.Duration, from transport.Stamp) *timeBound {
	if d == 0 {
		return nil
	}
	return &timeBound{d, from}
}

// left is the time until the limit; a nil bound never ends.
func (l *timeBound) left(now transport.Stamp) time.Duration {
	if l == nil {
		return async.NoDeadline
	}
	return l.d - now.Since(l.from)
}

// valid is how long the limit allows a hold to be relied on.
func (l *timeBound) valid(now transport.Stamp) time.Duration {
	if l == nil {
		return async.NoDeadline
	}
	return l.left(now) - driftMargin(l.d)
}
