package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Extend implements [hold.Backend].
func (s *Hold) Extend(ctx context.Context, d time.Duration) error {
	o := s.Ownership
	if err := o.Client.Begin(ctx); err != nil {
		return fault.Op("extend", o.Name(), err)
	}
	defer o.Client.Done()
	if err := o.SendMu.Lock(ctx); err != nil {
		return fault.Op("extend", o.Name(), outcome.Unavailable(fault.ContextError(ctx)))
	}
	defer o.SendMu.Unlock()
	return s.extendBy(ctx, d)
}

// extendBy sends a renewal of one hold. The caller holds SendMu.
func (s *Hold) extendBy(ctx context.Context, d time.Duration) error {
	o := s.Ownership
	if err := s.mayExtend(d); err != nil {
		return fault.Op("extend", o.Name(), err)
	}
	c, client := o.Protocol.RenewalCall(o, d), o.Client
	a, err := client.Sender.Call(ctx, client.Closing, c.Confirmed(client.Replication))
	if a.Doubt || errors.Is(err, fault.ErrNotReplicated) {
		o.mu.Lock()
		o.Doubt.ExtensionInDoubt(d)
		o.mu.Unlock()
	}
	switch result, causes := script.ReadRenewal(a, err); {
	case causes != nil:
		return fault.Op("extend", o.Name(), causes...)
	case result == 0:
		watched{o}.Gone()
	default:
		watched{o}.Renewed(a.Sent, d, result)
	}
	return s.extended(d)
}

// mayExtend checks, under SendMu, that the hold can be extended by d.
func (s *Hold) mayExtend(d time.Duration) error {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.Client.Clock()
	switch {
	case s.errLocked() != nil:
		return fault.NotHeld(s.errLocked())
	case d > min(o.Lease.Limit.Left(now), s.Limit.Left(now)):
		return fault.ErrMaxHold
	}
	o.Doubt.Renewal = true
	return nil
}

// extended reports whether the hold is still valid after the answer. If it ended while the request
// was in flight, extended undoes the extension in the background.
func (s *Hold) extended(d time.Duration) error {
	o := s.Ownership
	o.mu.Lock()
	err, phase := s.errLocked(), o.Phase
	o.mu.Unlock()
	if err == nil {
		return nil
	}
	if phase == Over {
		o.UndoLater(0, d)
	}
	return fault.Op("extend", o.Name(), fault.NotHeld(err))
}

// MayDowngrade checks that the hold is the only one, so that a hold that reads may take its place.
// SendMu is held.
func (s *Hold) MayDowngrade() error {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case s.errLocked() != nil:
		return fault.NotHeld(s.errLocked())
	case o.Lease.Valid(o.Client.Clock()) <= 0:
		return errors.Join(fault.ErrNotHeld, fault.ErrLost)
	case o.KeptUntil.KeptFor(o.Client.Clock()) > 0:
		return fault.Invalid("the hold cannot be downgraded before its AtLeast is over")
	case o.Holds.Count > 1:
		return fault.Invalid("the write lock is held %d times, and only the last hold can be downgraded", o.Holds.Count)
	}
	return nil
}
