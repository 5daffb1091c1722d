package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// Limits of a hold besides its lease: MaxHold, and the lease that is set for a permit. EndIfDue
// (end.go) ends an outermost hold at its MaxHold.
//
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
	start := o.Client.Clock().Before(time.Since(bounds.From))
	switch {
	case bounds.Max == 0:
	case &s.Item == o.Holds.Outermost():
		o.Lease.Limit = lease.NewBound(bounds.Max, start)
	default:
		s.Limit = lease.NewBound(bounds.Max, start)
	}
	o.plan()
}

// limitReached ends a re-entry at its own limit, and takes it off the server's count in the
// background. The outer hold goes on.
func (o *Ownership) limitReached(h *hold.Item) {
	o.mu.Lock()
	if !h.Active() || o.Phase != Held {
		o.mu.Unlock()
		return
	}
	if o.Holds.Uncount(h) {
		o.lastReleaseBegins()
	}
	ending := o.Holds.Remove(h, fault.ErrMaxHold)
	o.plan()
	lease := o.Lease.Span()
	o.mu.Unlock()
	ending.End(fault.ErrMaxHold)
	o.UndoLater(0, lease)
}

// UntilMaxHold is how long the hold may last at most: until its own limit or that of the outermost
// hold.
func (s *Hold) UntilMaxHold() time.Duration {
	o := s.Ownership
	now := o.Client.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(s.Limit.Valid(now), o.Lease.Limit.Left(now))
}

// FixLease ends the renewal of a permit whose lease is about to be set. Until the server answers,
// the permit ends after the new lease or the current one, whichever is shorter. FixLease returns an
// error if the permit is no longer held.
func (s *Hold) FixLease(sent lease.Stamp, lease time.Duration) error {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := s.errLocked(); err != nil {
		return fault.NotHeld(err)
	}
	o.Holds.StopRenewal(&s.Item)
	o.Doubt.ExtensionInDoubt(lease)
	o.Lease.Shorten(sent, lease)
	o.plan()
	return nil
}

// LeaseFixed notes that the server has set the lease of a permit, longer or shorter. A release that
// waits for this answer needs the lease too, for its own answer.
func (s *Hold) LeaseFixed(sent lease.Stamp, lease time.Duration) {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.Phase.begun() {
		return
	}
	o.Lease.Set(sent, lease)
	o.plan()
}
