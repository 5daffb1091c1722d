package acquire

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// ResolveOwner finds the ownership that an acquisition is for: that of an explicit owner, of the hold on the
// context, or of the owner on the context. Without any of them it returns nil: the acquisition needs a fresh
// owner.
func ResolveOwner(ctx context.Context, a *Acquisition) (*ownership.Ownership, error) {
	p, owner := a.Lock, a.As
	if owner.IsZero() {
		if h := HoldFrom(ctx, &p.Lock, ""); h != nil {
			a.Under = &h.Item
			return h.Ownership, p.mayEnter(h.Ownership)
		}
	}
	if owner.IsZero() && p.Spec.Reentrant {
		var err error
		if owner, err = identity.OwnerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	o := owners.Of(p.Client).Find(&p.Lock, owner)
	return o, p.mayEnter(o)
}

// mayEnter refuses an acquisition that could only wait for itself, or that would mix two kinds of lock.
func (p *Lock) mayEnter(o *ownership.Ownership) error {
	switch {
	case o.Spec.Family != p.Spec.Family:
		return fault.WrongKind(keyspace.Noun(p.Spec.Stored), keyspace.Noun(o.Spec.Stored), nil)
	case !p.Spec.Reentrant && o.Live():
		return fault.Invalid("%s is not re-entrant, and the context carries a hold of it", keyspace.Noun(p.Spec.Family))
	}
	return nil
}

// NoOwner is ResolveOwner for kinds that cannot be re-entered.
func NoOwner(context.Context, *Acquisition) (*ownership.Ownership, error) {
	return nil, nil //nolint:nilnil // no owner is not an error
}

// FreshOwner makes an ownership for a new owner.
func FreshOwner(a *Acquisition) (o *ownership.Ownership, others []*ownership.Ownership) {
	return ownership.Fresh(&a.Lock.Lock), nil
}
