package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// limitReached ends a re-entry at its own limit, and takes it off the server's count in the
// background. The outer hold goes on.
func (o *Ownership) limitReached(h *hold.Item) {
	o.mu.Lock()
	if !h.Active() || o.Phase != Held {
		o.mu.Unlock()
		return
	}
	o.uncount(h)
	ending := o.Holds.Remove(h, fault.ErrMaxHold)
	o.plan()
	lease := o.Lease.Span()
	o.mu.Unlock()
	ending.End(fault.ErrMaxHold)
	o.UndoLater(0, lease)
}

// endLimited ends the re-entries that are past their own limits.
func (o *Ownership) endLimited() {
	now := o.Lock.Client.Clock()
	o.mu.Lock()
	past := o.Holds.PastLimit(now)
	o.mu.Unlock()
	for _, h := range past {
		o.limitReached(h)
	}
}

// UntilMaxHold is how long the hold may last at most: until its own limit or that of the outermost hold.
func (s *Hold) UntilMaxHold() time.Duration {
	o := s.Ownership
	now := o.Lock.Client.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(s.Limit.Valid(now), o.Lease.Limit.Left(now))
}
