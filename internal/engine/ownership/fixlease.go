package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// FixLease ends the renewal of a permit whose lease is about to be set. Until the server answers, the permit ends after
// the new lease or the current one, whichever is shorter. FixLease returns an error if the permit is no longer held.
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

// LeaseFixed notes that the server has set the lease of a permit, longer or shorter. A release that waits for this answer
// needs the lease too, for its own answer.
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

// EndedBecause says why the hold is over, or is nil.
func (s *Hold) EndedBecause() error {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return s.errLocked()
}
