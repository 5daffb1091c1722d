package ownership

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// Hold is one hold of an ownership, and the [hold.Backend] of a lock that is not composite.
// Ownership.mu guards its item.
type Hold struct {
	hold.Item

	Ownership *Ownership
}

// Name implements [hold.Backend].
func (s *Hold) Name() string { return s.Ownership.Name() }

// Owner implements [hold.Backend].
func (s *Hold) Owner() identity.Owner { return s.Ownership.Owner() }

// Token implements [hold.Backend].
func (s *Hold) Token() int64 { return s.Fencing }

// IsPermit reports whether the hold is a permit of a semaphore.
func (s *Hold) IsPermit() bool { return s.Ownership.Spec.Permit }

// Keeper implements [hold.Backend].
func (s *Hold) Keeper() *hold.Keeper {
	if s.Ownership.Client.Config.ReportDropped {
		return nil
	}
	return &s.Item.Keeper
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
	o, now := s.Ownership, s.Ownership.Client.Clock()
	o.mu.Lock()
	expired := o.Phase == Held && o.Lease.Valid(now) <= 0
	limited := s.Limit.Valid(now) <= 0
	o.mu.Unlock()
	if expired {
		o.EndIfDue()
	}
	if limited {
		o.limitReached(&s.Item)
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

// EndedBecause says why the hold is over, or is nil.
func (s *Hold) EndedBecause() error {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return s.errLocked()
}

// ValidFor implements [hold.Backend].
func (s *Hold) ValidFor() time.Duration {
	if s.Err() != nil {
		return 0
	}
	o, now := s.Ownership, s.Ownership.Client.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(min(o.Lease.Valid(now), s.Limit.Valid(now)), 0)
}

// Count implements [hold.Backend].
func (s *Hold) Count() int {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Holds.CountUnder(s.Outermost())
}

// Unreleased leaves out a permit that is not renewed: another process may have its id.
func (s *Hold) Unreleased() *report.Reporter {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if !s.Active() || !o.Spec.IsLock() && !s.Renew {
		return nil
	}
	return o.Client.Reporter
}

// AttachNote keeps a note of the hold on the server until the hold ends.
func (s *Hold) AttachNote(text string) {
	o := s.Ownership
	drop := o.Client.Record.AddNote(o.Owner(), text)
	if err := hold.OnEnd(s, func(error) { drop(o.Live()) }); err != nil {
		drop(false)
	}
}

// HasWorkUnder reports whether a hold of the ownership has a context that ends with root.
func (o *Ownership) HasWorkUnder(root context.Context) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for h := range o.Holds.Roots {
		if h.HasWorkUnder(root) {
			return true
		}
	}
	return false
}

// Nested returns the ownership that reads for the owner, which writes: under a hold of it, or, if
// under is nil, for its owner. read makes one if there is none, or if the last one is over. Not
// earlier: they have one name in Redis, so the release of the last one would find nothing. Nested
// returns nil if the hold has ended: another goroutine may write under the same owner by then.
func (o *Ownership) Nested(under *hold.Item, read func() *Ownership) *Ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	if under != nil && !under.Active() {
		return nil
	}
	if o.Sibling == nil || o.Sibling.CurrentPhase() == Over {
		o.Sibling = read()
	}
	return o.Sibling
}
