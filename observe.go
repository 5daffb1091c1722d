package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// This file sends the events of calls and ownerships to the client's observer. Without an observer it does
// nothing.

// observeCall reports the outcome of a call on an object that has no ownership: it succeeded or gave up.
func (o *synchronizer) observeCall(parent *context.Context, got report.EventType, count int, began time.Time, err error) {
	e := report.Event{Type: got, Kind: o.kind, Name: o.names.Name, Count: count, Wait: time.Since(began), Err: err}
	if err != nil {
		e.Type = report.GaveUp
	}
	o.client.reporter.Observe(parent, e)
}

// observeAttempt reports one attempt to acquire count permits.
func (o *synchronizer) observeAttempt(parent *context.Context, count int, err error) {
	if parent != nil {
		o.client.reporter.Observe(parent, report.Event{Type: report.Attempt, Kind: o.kind, Name: o.names.Name, Count: count, Err: script.Returned(err)})
	}
}

// event returns an event about the owner of a lock or a permit.
func (p *primitive) event(t report.EventType, number uint64, owner identity.Owner) report.Event {
	e := report.Event{Type: t, Kind: p.spec.kind, Name: p.Name(), Owner: owner}
	if p.spec.permit {
		e.Permit, e.Owner = owner.String(), identity.New(p.client.id, number)
	}
	return e
}

// observe reports what happened to the ownership, or to the hold s, which is the outermost one if s is nil. A
// party of a barrier is not a hold: it has only the events of its Await.
func (o *ownership) observe(t report.EventType, s *holdState, err error) {
	if o.lock.client.options.Observer == nil || o.lock.spec.party {
		return
	}
	e := o.lock.event(t, o.number, o.owner())
	e.Err = err
	now := o.lock.client.clock()
	o.mu.Lock()
	if s == nil {
		s = o.holds.outermost()
	}
	parent := s.parent
	if t == report.Lost || t == report.Released {
		e.Held = now.Since(s.acquired)
	}
	o.mu.Unlock()
	o.lock.client.reporter.Observe(parent, e)
}

// observeEnd reports one event for each outermost hold that has ended. Holds that read along were acquired
// separately, so each has its own event.
func (o *ownership) observeEnd(t report.EventType, err error) {
	if o.lock.client.options.Observer == nil {
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

// observeAttempt reports one attempt.
func (a *acquisition) observeAttempt(err error) {
	if o := a.ownership; a.parent != nil {
		e := o.lock.event(report.Attempt, o.number, o.owner())
		e.Err = script.Returned(err)
		o.lock.client.reporter.Observe(a.parent, e)
	}
}

// observeEnd reports the outcome of the call: a hold, possibly a re-entry, or an error.
func (a *acquisition) observeEnd(reentry bool, err error) {
	if a.parent == nil {
		return
	}
	c := a.lock.client
	wait := c.clock().Since(a.began)
	if err != nil {
		var e report.Event
		if o := a.ownership; o != nil {
			e = o.lock.event(report.GaveUp, o.number, o.owner())
		} else {
			e = report.Event{Type: report.GaveUp, Kind: a.lock.spec.kind, Name: a.lock.Name()}
		}
		e.Err, e.Wait = err, wait
		c.reporter.Observe(a.parent, e)
		return
	}
	for o := range a.each {
		o.observeAcquired(a.parent, wait, reentry)
	}
}

// observeAcquired reports a hold that a call with that parent got after waiting for that time.
func (o *ownership) observeAcquired(parent *context.Context, wait time.Duration, reentry bool) {
	e := o.lock.event(report.Acquired, o.number, o.owner())
	e.Wait, e.Reentry = wait, reentry
	o.lock.client.reporter.Observe(parent, e)
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
