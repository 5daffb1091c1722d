package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// While a [MultiLock] waits for a member, the members that it holds are renewed, whatever [Lease]
// and [MaxHold] say. These options apply to the whole, and confine its members once all are
// there.

// confines reports whether a request has limits that must wait for the whole.
func (r *request) confines() bool { return r.waits && (!r.renew || r.maxHold > 0) }

// Confine implements [holdBackend].
func (s *holdState) Confine(bounds confinement) {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.errOf(s) != nil {
		return
	}
	if bounds.fixed {
		o.holds.stopRenewal(s)
	}
	start := o.lock.client.clock().Before(time.Since(bounds.from))
	switch {
	case bounds.max == 0:
	case s == o.holds.outermost():
		o.lease.Limit = lease.NewBound(bounds.max, start)
	default:
		s.limit = lease.NewBound(bounds.max, start)
	}
	o.plan()
}
