package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// While a MultiLock waits for a member, the members that it holds are renewed, whatever Lease
// and MaxHold say. These options apply to the whole, and confine its members once all are
// there.

// Confine implements [hold.Backend].
func (s *Hold) Confine(bounds hold.Confinement) {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.errLocked() != nil {
		return
	}
	if bounds.Fixed {
		o.Holds.StopRenewal(&s.Item)
	}
	start := o.Lock.Client.Clock().Before(time.Since(bounds.From))
	switch {
	case bounds.Max == 0:
	case &s.Item == o.Holds.Outermost():
		o.Lease.Limit = lease.NewBound(bounds.Max, start)
	default:
		s.Limit = lease.NewBound(bounds.Max, start)
	}
	o.plan()
}
