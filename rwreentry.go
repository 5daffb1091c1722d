package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// An owner can have two ownerships on one read/write lock, one on each side, under the same name on the wire: a
// writer may read. The ownership that reads is then nested in the one that writes. Its own number lets the
// server distinguish it from earlier ones. It may outlive the one that writes.

// resolveSide is [resolveOwner] for the sides of a read/write lock.
func resolveSide(ctx context.Context, a *acquisition) (*ownership, error) {
	p, owner := a.lock, a.Named()
	if owner.IsZero() {
		if h := holdFrom(ctx, &p.primitive, p.spec.side); h != nil {
			a.under = h
			return h.ownership, nil
		}
		if h := holdFrom(ctx, &p.primitive, p.spec.otherSide()); h != nil {
			if o, err := otherSide(h.ownership, &p.primitive, h); o != nil || err != nil {
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
	if owner.ClientID() != p.client.ID {
		return nil, fault.Invalid("owner %v belongs to another client and cannot join a hold of a read/write lock", owner)
	}
	return findSide(&p.primitive, owner)
}

// otherSide returns the ownership on the side of p for an owner that has o on the other side: under a hold of
// it, or, if under is nil, for its owner. It returns nil to read under a hold that has just ended.
func otherSide(o *ownership, p *primitive, under *holdState) (*ownership, error) {
	switch {
	case p.spec.side == keyspace.KindRead:
		return o.nest(p, under), nil
	case o.isNested() && o.sibling.live():
		return o.sibling, nil
	}
	return nil, fault.ErrUpgrade
}

// findSide returns the ownership of an explicit owner on a side of a read/write lock.
func findSide(p *primitive, owner identity.Owner) (*ownership, error) {
	r := p.client.registry
	if o := r.known(ownedName{p.names.Key, p.spec.side, owner}); o != nil && o.usable() && o.mayBeEntered(nil) {
		return o, nil
	}
	if other := r.known(ownedName{p.names.Key, p.spec.otherSide(), owner}); other != nil && other.live() && other.mayBeEntered(nil) {
		return otherSide(other, p, nil)
	}
	return r.newFor(p, ownedName{p.names.Key, p.spec.side, owner}), nil
}
