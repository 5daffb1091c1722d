package ownership

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

// Hold is one hold of an ownership, and the [hold.Backend] of a lock that is not composite.
// Ownership.mu guards the fields that change.
type Hold struct {
	hold.Lifecycle

	kept      hold.Kept // until the first renewal
	Ownership *Ownership
	fencing   int64 // the token, or 0
	shown     bool  // the program has seen the owner, under this outermost hold
	renew     bool  // the hold wants renewal

	within *Hold           // the outermost hold of a re-entry, else nil
	limit  *lease.Bound    // of a re-entry; the lease has that of the outermost hold
	former *identity.Owner // see formerOwner

	// For the observer.
	acquired lease.Stamp      // of an outermost hold: just before the request that acquired it
	parent   *context.Context // of its events, or nil: see report.Reporter.Parent
}

// Name implements [hold.Backend].
func (s *Hold) Name() string { return s.Ownership.Lock.Name() }

// Owner implements [hold.Backend].
func (s *Hold) Owner() identity.Owner { return s.shownOwner() }

// Token implements [hold.Backend].
func (s *Hold) Token() int64 { return s.fencing }

// IsPermit reports whether the hold is a permit of a semaphore.
func (s *Hold) IsPermit() bool { return s.Ownership.Lock.Spec.Permit }

// Kept implements [hold.Backend].
func (s *Hold) Kept() *hold.Kept {
	if s.Ownership.Lock.Client.Config.ReportDropped {
		return nil
	}
	return &s.kept
}

// Life implements [hold.Backend].
func (s *Hold) Life() (*hold.Lifecycle, *sync.Mutex) { return &s.Lifecycle, &s.Ownership.mu }

// Members implements [hold.Backend].
func (s *Hold) Members() []*hold.Handle { return nil }

// Unlock implements [hold.Backend].
func (s *Hold) Unlock(ctx context.Context) error {
	err := s.release(ctx)
	if err != nil && s.IsPermit() {
		return fault.WithVerb("release", err)
	}
	return err
}

// Err first ends a hold that should have ended already: no timer fires while the machine sleeps.
func (s *Hold) Err() error {
	o := s.Ownership
	o.mu.Lock()
	expired := o.Phase == Held && o.valid() <= 0
	limited := s.limit.Valid(o.Lock.Client.Clock()) <= 0
	o.mu.Unlock()
	if expired {
		o.EndIfDue()
	}
	if limited {
		s.limitReached()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return s.errLocked()
}

// errLocked says why the hold is not held, or is nil. Ownership.mu is held.
func (s *Hold) errLocked() error {
	if err := s.OverBecause(); err != nil || s.Ownership.Phase == Held {
		return err
	}
	return fault.ErrNotHeld
}

// ValidFor implements [hold.Backend].
func (s *Hold) ValidFor() time.Duration {
	if s.Err() != nil {
		return 0
	}
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(min(o.valid(), s.limit.Valid(o.Lock.Client.Clock())), 0)
}

// Count implements [hold.Backend].
func (s *Hold) Count() int {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Holds.countUnder(s.outermost())
}

// outermost is the hold that a re-entry has entered, or the hold itself.
func (s *Hold) outermost() *Hold { return cmp.Or(s.within, s) }

// formerOwner is an owner that nobody has, always the same one. Ownership.mu is held.
func (s *Hold) formerOwner(c *Engine) identity.Owner {
	if s.former == nil {
		former := identity.New(c.ID, c.Number())
		s.former = &former
	}
	return *s.former
}

// Unreleased leaves out a permit that is not renewed: another process may have its id.
func (s *Hold) Unreleased() *report.Reporter {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if !s.Active() || !o.Lock.Spec.IsLock() && !s.renew {
		return nil
	}
	return o.Lock.Client.Reporter
}

// AttachNote keeps a note of the hold on the server until the hold ends.
func (s *Hold) AttachNote(text string) {
	o := s.Ownership
	drop := o.Lock.Client.Record.AddNote(o.Owner(), text)
	if err := hold.OnEnd(s, func(error) { drop(o.Live()) }); err != nil {
		drop(false)
	}
}

// HandleFrom returns the innermost live hold of the lock on ctx, or the innermost one if none is live, or nil.
func (p *Lock) HandleFrom(ctx context.Context) *hold.Handle {
	return hold.From(ctx, func(b hold.Backend) bool {
		s, is := b.(*Hold)
		return is && s.isOf(p)
	})
}

// isOf reports whether it is a hold of that lock, or of that side of it, in that client.
func (s *Hold) isOf(p *Lock) bool {
	return s.isOn(p, p.Spec.Side) && s.Ownership.Lock.Spec.Family == p.Spec.Family
}

// isOn reports whether it is a hold of the key of that lock, or of one side of it, in that client.
func (s *Hold) isOn(p *Lock, side keyspace.Kind) bool {
	l := s.Ownership.Lock
	return l.Client == p.Client && l.Names.Key == p.Names.Key && l.Spec.Side == side
}

// HoldFrom returns the innermost live hold on ctx of the key of a lock, or of one side of it, or nil.
func HoldFrom(ctx context.Context, p *Lock, side keyspace.Kind) *Hold {
	for h := range hold.On(ctx) {
		if h.Err() != nil {
			continue // the members of a group that is over are given back a moment later
		}
		found := h.Find(func(b hold.Backend) bool {
			s, is := b.(*Hold)
			return is && s.isOn(p, side)
		})
		if found != nil && found.Err() == nil {
			return found.Backend().(*Hold)
		}
	}
	return nil
}
