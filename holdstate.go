package latchkey

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// holdState is one hold of an ownership, and the [holdBackend] of a lock that is not composite.
// ownership.mu guards the fields that change.
type holdState struct {
	lifecycle

	handle    atomic.Pointer[Hold] // until the first renewal: see newHold
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

func (s *holdState) lockName() string      { return s.ownership.lock.Name() }
func (s *holdState) owner() identity.Owner { return s.ownership.shownOwner(s) }
func (s *holdState) token() int64          { return s.fencing }
func (s *holdState) isPermit() bool        { return s.ownership.lock.spec.permit }

// keepHandle implements [holdBackend].
func (s *holdState) keepHandle(h *Hold) bool {
	if s.ownership.lock.client.options.ReportDropped {
		return false
	}
	s.handle.Store(h)
	return true
}

func (s *holdState) isWatched() bool { return s.handle.Load() == nil }

// watchHandle leaves the handle to the program: if that drops it, the garbage collector finds it.
func (s *holdState) watchHandle() {
	if h := s.handle.Swap(nil); h != nil {
		runtime.SetFinalizer(h, (*Hold).abandoned)
	}
}

func (s *holdState) life() (*lifecycle, *sync.Mutex) { return &s.lifecycle, &s.ownership.mu }
func (s *holdState) latestMembers() []*Hold          { return nil }

func (s *holdState) unlock(ctx context.Context) error {
	err := s.ownership.releaseHold(ctx, s)
	if err != nil && s.isPermit() {
		return fault.WithVerb("release", err)
	}
	return err
}

// err first ends a hold that should have ended already: no timer fires while the machine sleeps.
func (s *holdState) err() error {
	o := s.ownership
	o.mu.Lock()
	expired := o.phase == held && o.valid() <= 0
	limited := s.limit.Valid(o.lock.client.clock()) <= 0
	o.mu.Unlock()
	if expired {
		o.endIfDue()
	}
	if limited {
		o.limitReached(s)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errOf(s)
}

// errOf says why a hold is not held, or is nil. o.mu is held.
func (o *ownership) errOf(s *holdState) error {
	if err := s.overBecause(); err != nil || o.phase == held {
		return err
	}
	return fault.ErrNotHeld
}

func (s *holdState) validFor() time.Duration {
	if s.err() != nil {
		return 0
	}
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(min(o.valid(), s.limit.Valid(o.lock.client.clock())), 0)
}

func (s *holdState) count() int {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.countUnder(s.outermost())
}

// outermost is the hold that a re-entry has entered, or the hold itself.
func (s *holdState) outermost() *holdState { return cmp.Or(s.within, s) }

// formerOwner is an owner that nobody has, always the same one. ownership.mu is held.
func (s *holdState) formerOwner(c *Client) identity.Owner {
	if s.former == nil {
		former := identity.New(c.id, c.registry.number())
		s.former = &former
	}
	return *s.former
}

// unreleased leaves out a permit that is not renewed: another process may have its id.
func (s *holdState) unreleased() *Client {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	if !s.active() || !o.lock.spec.isLock() && !s.renew {
		return nil
	}
	return o.lock.client
}

// attachNote keeps a note of the hold on the server until the hold ends.
func (s *holdState) attachNote(text string) {
	o := s.ownership
	drop := o.lock.client.record.addNote(o.owner(), text)
	if err := onEnd(s, func(error) { drop(o.live()) }); err != nil {
		drop(false)
	}
}
