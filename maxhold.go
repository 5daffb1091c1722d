package latchkey

import (
	"time"

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
		return noDeadline
	}
	return l.d - now.Since(l.from)
}

// valid is how long the limit allows a hold to be relied on.
func (l *timeBound) valid(now transport.Stamp) time.Duration {
	if l == nil {
		return noDeadline
	}
	return l.left(now) - driftMargin(l.d)
}

// limitHold sets the timer of a re-entry, if it has a limit of its own. o.mu is held.
func (o *ownership) limitHold(s *holdState) {
	if s.limit() != nil {
		s.rare.timer = time.AfterFunc(s.limit().valid(o.lock.client.clock()), func() { o.limitReached(s) })
	}
}

// limitReached ends a re-entry at its own limit, and takes it off the server's count in the
// background. The outer hold goes on.
func (o *ownership) limitReached(s *holdState) {
	o.mu.Lock()
	if !s.active() || o.phase != held {
		o.mu.Unlock()
		return
	}
	o.uncount(s)
	dependents := o.holds.remove(s, ErrMaxHold)
	o.plan()
	lease := o.lease.span()
	o.mu.Unlock()
	endDependents(dependents, ErrMaxHold)
	o.undoLater(0, lease)
}

// endLimited ends the re-entries that are past their own limits, in case the machine slept and
// their timers have not fired.
func (o *ownership) endLimited() {
	now := o.lock.client.clock()
	o.mu.Lock()
	past := o.holds.pastLimit(now)
	o.mu.Unlock()
	for _, s := range past {
		o.limitReached(s)
	}
}
