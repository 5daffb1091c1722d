package lease

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

// Bound is a duration that counts from a stamp: the longest that a hold may last (MaxHold),
// or the shortest that a lock stays taken (AtLeast). Most holds have none, which is a nil
// Bound: it allows everything and requires nothing.
type Bound struct {
	D    time.Duration
	From Stamp
}

// NewBound returns a bound, or nil if it is 0.
func NewBound(d time.Duration, from Stamp) *Bound {
	if d == 0 {
		return nil
	}
	return &Bound{d, from}
}

// Left is the time until the limit; a nil bound never ends.
func (l *Bound) Left(now Stamp) time.Duration {
	if l == nil {
		return async.NoDeadline
	}
	return l.D - now.Since(l.From)
}

// Valid is how long the limit allows a hold to be relied on.
func (l *Bound) Valid(now Stamp) time.Duration {
	if l == nil {
		return async.NoDeadline
	}
	return l.Left(now) - Margin(l.D)
}

// KeptFor is the remaining time for which a lock stays taken. It counts from the answer to the
// acquisition, by the monotonic clock alone: setting the wall clock forward does not shorten it.
func (l *Bound) KeptFor(now Stamp) time.Duration {
	if l == nil {
		return 0
	}
	return max(l.D-(now.Mono-l.From.Mono), 0)
}
