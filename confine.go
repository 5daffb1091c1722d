package latchkey

import "time"

// While a [MultiLock] waits for a member, those that it holds are renewed, whatever [Lease]
// and [MaxHold] say: these are about the whole, and confine its members when all are there.

// confinement is what binds a hold from a moment on.
type confinement struct {
	fixed bool          // its lease is not renewed any more
	max   time.Duration // the longest time for which it lasts, or 0
	from  time.Time     // counted from here
}

// confines reports whether a request asks for anything that has to wait for the whole.
func (r *request) confines() bool { return r.waits && (!r.renew || r.maxHold > 0) }

func (s *holdState) confine(bounds confinement) {
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
		o.lease.bind(newTimeBound(bounds.max, start))
	default:
		s.makeRare().limit = newTimeBound(bounds.max, start)
		o.limitHold(s)
	}
	o.plan()
}
