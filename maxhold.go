package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// limitReached ends a re-entry at its own limit, and takes it off the server's count in the
// background. The outer hold goes on.
func (s *holdState) limitReached() {
	o := s.ownership
	o.mu.Lock()
	if !s.Active() || o.phase != held {
		o.mu.Unlock()
		return
	}
	o.uncount(s)
	ending := o.holds.remove(s, fault.ErrMaxHold)
	o.plan()
	lease := o.lease.Span()
	o.mu.Unlock()
	ending.End(fault.ErrMaxHold)
	o.undoLater(0, lease)
}

// endLimited ends the re-entries that are past their own limits.
func (o *ownership) endLimited() {
	now := o.lock.client.Clock()
	o.mu.Lock()
	past := o.holds.pastLimit(now)
	o.mu.Unlock()
	for _, s := range past {
		s.limitReached()
	}
}

// untilMaxHold is how long the hold may last at most: until its own limit or that of the outermost hold.
func (s *holdState) untilMaxHold() time.Duration {
	o := s.ownership
	now := o.lock.client.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(s.limit.Valid(now), o.lease.Limit.Left(now))
}
