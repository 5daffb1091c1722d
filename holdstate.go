package latchkey

import (
	"context"
	"sync"
	"time"
)

// holdState is one hold of an ownership, and the [holder] of a lock that is not composite.
// What changes in it is guarded by ownership.mu.
type holdState struct {
	lifecycle

	ownership *ownership
	renew     bool        // the hold wants renewal
	limit     holdLimit   // of a re-entry; that of the outermost hold is the lease's
	timer     *time.Timer // for the limit, or nil
}

func (s *holdState) lockName() string { return s.ownership.lock.name }
func (s *holdState) owner() Owner     { return s.ownership.owner }
func (s *holdState) token() int64     { return s.ownership.token }
func (s *holdState) isShared() bool   { return s.ownership.lock.spec.shared }

func (s *holdState) life() (*lifecycle, *sync.Mutex) { return &s.lifecycle, &s.ownership.mu }
func (s *holdState) latestMembers() []*Hold          { return nil }

func (s *holdState) unlock(ctx context.Context) error { return s.ownership.releaseHold(ctx, s) }

// err ends what should have ended already: no timer fires while the machine sleeps.
func (s *holdState) err() error {
	t := s.ownership
	t.mu.Lock()
	expired := t.phase == held && t.valid() <= 0
	limited := s.limit.valid(t.client.clock()) <= 0
	t.mu.Unlock()
	if expired {
		t.endIfDue()
	}
	if limited {
		t.limitReached(s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.errOf(s)
}

// errOf is why a hold is not held, or nil. t.mu is held.
func (t *ownership) errOf(s *holdState) error {
	if err := s.overBecause(); err != nil || t.phase == held {
		return err
	}
	return ErrNotHeld
}

func (s *holdState) validFor() time.Duration {
	if s.err() != nil {
		return 0
	}
	t := s.ownership
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(min(t.valid(), s.limit.valid(t.client.clock())), 0)
}

func (s *holdState) count() int { return s.ownership.count() }

func (s *holdState) find(p *primitive, side Kind) *holdState {
	t := s.ownership
	if t.client == p.client && t.lock.key == p.key && t.lock.spec.side == side && s.err() == nil {
		return s
	}
	return nil
}

// unreleased leaves out a permit that ends by itself: it may be left to whoever has its id.
func (s *holdState) unreleased() *Client {
	t := s.ownership
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.active() || t.lock.spec.shared && !s.renew {
		return nil
	}
	return t.client
}

// end is [lifecycle.end] with the hold's own limit. ownership.mu is held.
func (s *holdState) end(cause error) []*ending {
	if s.timer != nil {
		s.timer.Stop()
	}
	return s.lifecycle.end(cause)
}
