package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// holdLimit is how long a hold may last at most: what MaxHold says, counted from a stamp. Most holds
// have none: a nil holdLimit allows everything.
type holdLimit struct {
	max  time.Duration
	from transport.Stamp
}

// newHoldLimit returns a limit, or nil if it is 0.
func newHoldLimit(most time.Duration, from transport.Stamp) *holdLimit {
	if most == 0 {
		return nil
	}
	return &holdLimit{most, from}
}

// left is what is left until the limit, never without one.
func (l *holdLimit) left(now transport.Stamp) time.Duration {
	if l == nil {
		return noDeadline
	}
	return l.max - now.Since(l.from)
}

// valid is for how long the limit lets a hold be relied on.
func (l *holdLimit) valid(now transport.Stamp) time.Duration {
	if l == nil {
		return noDeadline
	}
	return l.left(now) - driftMargin(l.max)
}

// limitHold sets the timer of a re-entry, if it has a limit of its own. o.mu is held.
func (o *ownership) limitHold(s *holdState) {
	if s.limit != nil {
		s.timer = time.AfterFunc(s.limit.valid(o.client.clock()), func() { o.limitReached(s) })
	}
}

// limitReached ends a re-entry at its own limit, and gives its count back in the
// background. The outer hold goes on.
func (o *ownership) limitReached(s *holdState) {
	o.mu.Lock()
	if !s.active() || o.phase != held {
		o.mu.Unlock()
		return
	}
	o.uncount(s)
	endings := o.holds.remove(s, ErrMaxHold)
	o.plan()
	lease := o.lease.span()
	o.mu.Unlock()
	endAll(endings, ErrMaxHold)
	o.undoLater(0, lease)
}

// endLimited ends the re-entries whose own limit is over, should their timers not have
// noticed that the machine slept.
func (o *ownership) endLimited() {
	now := o.client.clock()
	o.mu.Lock()
	past := o.holds.pastLimit(now)
	o.mu.Unlock()
	for _, s := range past {
		o.limitReached(s)
	}
}
