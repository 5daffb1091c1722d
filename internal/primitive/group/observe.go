package group

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// parentOf is the reporter's Parent for the clients of the members.
func (l *Lock) parentOf(ctx context.Context) *context.Context {
	for _, p := range l.Locks() {
		if parent := p.Client.Reporter.Parent(ctx); parent != nil {
			return parent
		}
	}
	return nil
}

// observeGaveUp reports to the observers of the clients of all members, once for each client.
func (l *Lock) observeGaveUp(parent *context.Context, began time.Time, err error) {
	if parent == nil {
		return
	}
	e := report.Event{Type: report.GaveUp, Kind: l.kind, Name: l.Name(), Wait: time.Since(began), Err: err}
	seen := map[*core.Parts]bool{}
	for _, p := range l.Locks() {
		if !seen[p.Client] {
			seen[p.Client] = true
			p.Client.Reporter.Observe(parent, e)
		}
	}
}
