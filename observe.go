package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// This file sends the events of calls and ownerships to the client's observer. Without an observer it does
// nothing.

// event returns an event about the owner of a lock or a permit.
func (p *primitive) event(t report.EventType, number uint64, owner identity.Owner) report.Event {
	e := report.Event{Type: t, Kind: p.spec.kind, Name: p.Name(), Owner: owner}
	if p.spec.permit {
		e.Permit, e.Owner = owner.String(), identity.New(p.client.ID, number)
	}
	return e
}

// observe reports what happened to the ownership, or to the hold s, which is the outermost one if s is nil. A
// party of a barrier is not a hold: it has only the events of its Await.
func (o *ownership) observe(t report.EventType, s *holdState, err error) {
	if !o.lock.client.Config.Observes || o.lock.spec.party {
		return
	}
	e := o.lock.event(t, o.number, o.owner())
	e.Err = err
	now := o.lock.client.Clock()
	o.mu.Lock()
	if s == nil {
		s = o.holds.outermost()
	}
	parent := s.parent
	if t == report.Lost || t == report.Released {
		e.Held = now.Since(s.acquired)
	}
	o.mu.Unlock()
	o.lock.client.Reporter.Observe(parent, e)
}

// observeEnd reports one event for each outermost hold that has ended. Holds that read along were acquired
// separately, so each has its own event.
func (o *ownership) observeEnd(t report.EventType, err error) {
	if !o.lock.client.Config.Observes {
		return
	}
	o.mu.Lock()
	var roots []*holdState
	for h := range o.holds.roots {
		roots = append(roots, h)
	}
	o.mu.Unlock()
	for _, h := range roots {
		o.observe(t, h, err)
	}
}

// observeAcquired reports a hold that a call with that parent got after waiting for that time.
func (o *ownership) observeAcquired(parent *context.Context, wait time.Duration, reentry bool) {
	e := o.lock.event(report.Acquired, o.number, o.owner())
	e.Wait, e.Reentry = wait, reentry
	o.lock.client.Reporter.Observe(parent, e)
}

// madeFor notes which call received a hold that was passed on.
func (s *holdState) madeFor(parent *context.Context) {
	if parent == nil {
		return
	}
	s.ownership.mu.Lock()
	defer s.ownership.mu.Unlock()
	s.parent = parent
}
