package hold

import (
	"cmp"
	"context"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// Item is what a [Set] keeps for a hold, which embeds it. The mutex of the set guards the fields
// that change.
type Item struct {
	Lifecycle

	Keeper  Keeper // of the handle, until the first renewal
	Fencing int64  // the token, or 0
	Shown   bool   // the program has shared the owner, under this outermost hold
	Renew   bool   // the hold wants renewal

	Within *Item           // the outermost hold of a re-entry, else nil
	Limit  *lease.Bound    // of a re-entry; the lease has that of the outermost hold
	former *identity.Owner // see FormerOwner

	// For the observer.
	Acquired lease.Stamp      // of an outermost hold: just before the request that acquired it
	Parent   *context.Context // of its events, or nil: see report.Reporter.Parent
}

// Outermost returns the hold that a re-entry has entered, or the hold itself.
func (h *Item) Outermost() *Item { return cmp.Or(h.Within, h) }

// FormerOwner returns an owner that nobody has, always the same one. fresh makes it.
func (h *Item) FormerOwner(fresh func() identity.Owner) identity.Owner {
	if h.former == nil {
		former := fresh()
		h.former = &former
	}
	return *h.former
}
