package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// While a [MultiLock] waits for a member, the members that it holds are renewed, whatever [Lease]
// and [MaxHold] say. These options apply to the whole, and confine its members once all are
// there.

// Confine implements [hold.Backend].
func (s *holdState) Confine(bounds hold.Confinement) {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.errLocked() != nil {
		return
	}
	if bounds.Fixed {
		o.holds.stopRenewal(s)
	}
	start := o.lock.client.Clock().Before(time.Since(bounds.From))
	switch {
	case bounds.Max == 0:
	case s == o.holds.outermost():
		o.lease.Limit = lease.NewBound(bounds.Max, start)
	default:
		s.limit = lease.NewBound(bounds.Max, start)
	}
	o.plan()
}
