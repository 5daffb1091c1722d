package rw

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// An owner can have two ownerships on one read/write lock, one on each side, under the same name on
// the wire: a writer may read. The ownership that reads is then nested in the one that writes. Its
// own number lets the server distinguish it from earlier ones. It may outlive the one that writes.

// resolveSide finds the ownership that an acquisition of a side is for, or returns nil for a new
// owner.
func resolveSide(ctx context.Context, a *acquire.Acquisition) (*ownership.Ownership, error) {
	p, owner := a.Lock, a.As
	if owner.IsZero() {
		if h := acquire.HoldFrom(ctx, &p.Lock, p.Spec.Side); h != nil {
			a.Under = &h.Item
			return h.Ownership, nil
		}
		if h := acquire.HoldFrom(ctx, &p.Lock, p.Spec.OtherSide()); h != nil {
			if o, err := OtherSide(h.Ownership, &p.Lock, &h.Item); o != nil || err != nil {
				return o, err
			}
		}
		var err error
		if owner, err = identity.OwnerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	if owner.ClientID() != p.Client.ID {
		return nil, fault.Invalid("owner %v belongs to another client "+
			"and cannot join a hold of a read/write lock", owner)
	}
	return findSide(&p.Lock, owner)
}

// OtherSide returns the ownership on the side of p for an owner that has o on the other side: under
// a hold of it, or, if under is nil, for its owner. It returns nil to read under a hold that has
// just ended.
func OtherSide(o *ownership.Ownership, p *ownership.Lock, under *hold.Item) (*ownership.Ownership, error) {
	switch {
	case p.Spec.Side == keyspace.KindRead:
		return owners.Of(p.Client).Nest(o, p, under), nil
	case o.IsNested() && o.Sibling.Live():
		return o.Sibling, nil
	}
	return nil, fault.ErrUpgrade
}

// findSide returns the ownership of an explicit owner on a side of a read/write lock.
func findSide(p *ownership.Lock, owner identity.Owner) (*ownership.Ownership, error) {
	r := owners.Of(p.Client)
	own := owners.OwnedName{Key: p.Names.Key, Side: p.Spec.Side, Owner: owner}
	if o := r.Known(own); o != nil && o.MayBeEntered() {
		return o, nil
	}
	on := owners.OwnedName{Key: p.Names.Key, Side: p.Spec.OtherSide(), Owner: owner}
	if other := r.Known(on); other != nil && other.Live() && other.MayBeEntered() {
		return OtherSide(other, p, nil)
	}
	return r.NewFor(p, own), nil
}
