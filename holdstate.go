package latchkey

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// holdState is one hold of an ownership, and the [hold.Backend] of a lock that is not composite.
// ownership.mu guards the fields that change.
type holdState struct {
	hold.Lifecycle

	kept      hold.Kept // until the first renewal
	ownership *ownership
	fencing   int64 // the token, or 0
	shown     bool  // the program has seen the owner, under this outermost hold
	renew     bool  // the hold wants renewal

	within *holdState      // the outermost hold of a re-entry, else nil
	limit  *lease.Bound    // of a re-entry; the lease has that of the outermost hold
	former *identity.Owner // see formerOwner

	// For the observer.
	acquired lease.Stamp      // of an outermost hold: just before the request that acquired it
	parent   *context.Context // of its events, or nil: see report.Reporter.Parent
}

// Name implements [hold.Backend].
func (s *holdState) Name() string { return s.ownership.lock.Name() }

// Owner implements [hold.Backend].
func (s *holdState) Owner() identity.Owner { return s.shownOwner() }

// Token implements [hold.Backend].
func (s *holdState) Token() int64 { return s.fencing }

func (s *holdState) isPermit() bool { return s.ownership.lock.spec.permit }

// Kept implements [hold.Backend].
func (s *holdState) Kept() *hold.Kept {
	if s.ownership.lock.client.Config.ReportDropped {
		return nil
	}
	return &s.kept
}

// Life implements [hold.Backend].
func (s *holdState) Life() (*hold.Lifecycle, *sync.Mutex) { return &s.Lifecycle, &s.ownership.mu }

// Members implements [hold.Backend].
func (s *holdState) Members() []*hold.Handle { return nil }

// Unlock implements [hold.Backend].
func (s *holdState) Unlock(ctx context.Context) error {
	err := s.release(ctx)
	if err != nil && s.isPermit() {
		return fault.WithVerb("release", err)
	}
	return err
}

// Err first ends a hold that should have ended already: no timer fires while the machine sleeps.
func (s *holdState) Err() error {
	o := s.ownership
	o.mu.Lock()
	expired := o.phase == held && o.valid() <= 0
	limited := s.limit.Valid(o.lock.client.Clock()) <= 0
	o.mu.Unlock()
	if expired {
		o.endIfDue()
	}
	if limited {
		s.limitReached()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return s.errLocked()
}

// errLocked says why the hold is not held, or is nil. ownership.mu is held.
func (s *holdState) errLocked() error {
	if err := s.OverBecause(); err != nil || s.ownership.phase == held {
		return err
	}
	return fault.ErrNotHeld
}

// ValidFor implements [hold.Backend].
func (s *holdState) ValidFor() time.Duration {
	if s.Err() != nil {
		return 0
	}
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(min(o.valid(), s.limit.Valid(o.lock.client.Clock())), 0)
}

// Count implements [hold.Backend].
func (s *holdState) Count() int {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.countUnder(s.outermost())
}

// outermost is the hold that a re-entry has entered, or the hold itself.
func (s *holdState) outermost() *holdState { return cmp.Or(s.within, s) }

// formerOwner is an owner that nobody has, always the same one. ownership.mu is held.
func (s *holdState) formerOwner(c *engine) identity.Owner {
	if s.former == nil {
		former := identity.New(c.ID, c.Number())
		s.former = &former
	}
	return *s.former
}

// Unreleased leaves out a permit that is not renewed: another process may have its id.
func (s *holdState) Unreleased() *report.Reporter {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if !s.Active() || !o.lock.spec.isLock() && !s.renew {
		return nil
	}
	return o.lock.client.Reporter
}

// attachNote keeps a note of the hold on the server until the hold ends.
func (s *holdState) attachNote(text string) {
	o := s.ownership
	drop := o.lock.client.Record.AddNote(o.owner(), text)
	if err := hold.OnEnd(s, func(error) { drop(o.live()) }); err != nil {
		drop(false)
	}
}

// handleFrom returns the innermost live hold of the lock on ctx, or the innermost one if none is live, or nil.
func (p *primitive) handleFrom(ctx context.Context) *hold.Handle {
	return hold.From(ctx, func(b hold.Backend) bool {
		s, is := b.(*holdState)
		return is && s.isOf(p)
	})
}

// isOf reports whether it is a hold of that lock, or of that side of it, in that client.
func (s *holdState) isOf(p *primitive) bool {
	return s.isOn(p, p.spec.side) && s.ownership.lock.spec.family == p.spec.family
}

// isOn reports whether it is a hold of the key of that lock, or of one side of it, in that client.
func (s *holdState) isOn(p *primitive, side keyspace.Kind) bool {
	l := s.ownership.lock
	return l.client == p.client && l.names.Key == p.names.Key && l.spec.side == side
}

// holdFrom returns the innermost live hold on ctx of the key of a lock, or of one side of it, or nil.
func holdFrom(ctx context.Context, p *primitive, side keyspace.Kind) *holdState {
	for h := range hold.On(ctx) {
		if h.Err() != nil {
			continue // the members of a group that is over are given back a moment later
		}
		found := h.Find(func(b hold.Backend) bool {
			s, is := b.(*holdState)
			return is && s.isOn(p, side)
		})
		if found != nil && found.Err() == nil {
			return found.Backend().(*holdState)
		}
	}
	return nil
}
