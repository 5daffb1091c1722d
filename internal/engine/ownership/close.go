package ownership

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// EndAtClose ends the holds because the client closes. It reports whether the lock must be
// released.
func (o *Ownership) EndAtClose() (mustRelease bool) {
	if o.CurrentPhase() == Releasing {
		return true // its Unlock is under way, and reports the outcome
	}
	next, ended := o.End(fault.ErrClosed)
	if !ended {
		return false
	}
	o.Leave(next, true, 0)
	return !o.Spec.Party
}

// ReleaseAtClose frees the lock of an ownership for which EndAtClose has reported that.
func (o *Ownership) ReleaseAtClose(ctx context.Context) error {
	if err := o.SendMu.Lock(ctx); err != nil {
		return fault.Op("close", o.Name(), fault.ErrUnknownOutcome, outcome.Unavailable(fault.ContextError(ctx)))
	}
	defer o.SendMu.Unlock()
	o.mu.Lock()
	unlocking, released := o.Phase == Releasing, o.Phase == Over && o.Holds.Cause == nil
	o.mu.Unlock()
	if released {
		return nil
	}
	a, err := o.sendCount(ctx, nil)
	switch {
	case err != nil:
		return fault.Op("close", o.Name(), err)
	case unlocking:
		o.undoAnswered(a)
	default:
		o.observeEnd(report.Released, nil)
	}
	return nil
}
