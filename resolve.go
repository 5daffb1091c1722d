package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// resolveOwner finds the ownership that an acquisition is for: that of an explicit owner, of the hold on the
// context, or of the owner on the context. Without any of them it returns nil: the acquisition needs a fresh
// owner.
func resolveOwner(ctx context.Context, a *acquisition) (*ownership, error) {
	p, owner := a.lock, a.Named()
	if owner.IsZero() {
		if h := holdFrom(ctx, &p.primitive, ""); h != nil {
			a.under = h
			return h.ownership, p.mayEnter(h.ownership)
		}
	}
	if owner.IsZero() && p.spec.reentrant {
		var err error
		if owner, err = identity.OwnerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	o := p.client.registry.find(&p.primitive, owner)
	return o, p.mayEnter(o)
}

// mayEnter refuses an acquisition that could only wait for itself, or that would mix two kinds of lock.
func (p *acquirable) mayEnter(o *ownership) error {
	switch {
	case o.lock.spec.family != p.spec.family:
		return fault.WrongKind(keyspace.Noun(p.spec.stored), keyspace.Noun(o.lock.spec.stored), nil)
	case !p.spec.reentrant && o.live():
		return fault.Invalid("%s is not re-entrant, and the context carries a hold of it", keyspace.Noun(p.spec.family))
	}
	return nil
}

// noOwner is resolveOwner for kinds that cannot be re-entered.
func noOwner(context.Context, *acquisition) (*ownership, error) {
	return nil, nil //nolint:nilnil // no owner is not an error
}

// freshOwner makes an ownership for a new owner.
func freshOwner(a *acquisition) (o *ownership, others []*ownership) {
	return a.lock.client.registry.fresh(&a.lock.primitive), nil
}
