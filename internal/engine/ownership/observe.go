package ownership

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// This file sends the events of calls and ownerships to the client's observer. Without an observer
// it does nothing.

// Event returns an event about the owner of a lock or a permit.
func (p *Lock) Event(t report.EventType, number uint64, owner identity.Owner) report.Event {
	e := report.Event{Type: t, Kind: p.Spec.Kind, Name: p.Name(), Owner: owner}
	if p.Spec.Permit {
		e.Permit, e.Owner = owner.String(), identity.New(p.Client.ID, number)
	}
	return e
}

// Observe reports what happened to the ownership, or to the hold h, which is the outermost one if h
// is nil. A party of a barrier is not a hold: it has only the events of its Await.
func (o *Ownership) Observe(t report.EventType, h *hold.Item, err error) {
	if !o.Client.Config.Observes || o.Spec.Party {
		return
	}
	e := o.Event(t, o.Number, o.Owner())
	e.Err = err
	now := o.Client.Clock()
	o.mu.Lock()
	if h == nil {
		h = o.Holds.Outermost()
	}
	parent := h.Parent
	if t == report.Lost || t == report.Released {
		e.Held = now.Since(h.Acquired)
	}
	o.mu.Unlock()
	o.Client.Reporter.Observe(parent, e)
}

// observeEnd reports one event for each outermost hold that has ended. Holds that read along were
// acquired separately, so each has its own event.
func (o *Ownership) observeEnd(t report.EventType, err error) {
	if !o.Client.Config.Observes {
		return
	}
	o.mu.Lock()
	var roots []*hold.Item
	for h := range o.Holds.Roots {
		roots = append(roots, h)
	}
	o.mu.Unlock()
	for _, h := range roots {
		o.Observe(t, h, err)
	}
}

// MadeFor notes which call received a hold that was passed on.
func (s *Hold) MadeFor(parent *context.Context) {
	if parent == nil {
		return
	}
	s.Ownership.mu.Lock()
	defer s.Ownership.mu.Unlock()
	s.Parent = parent
}
