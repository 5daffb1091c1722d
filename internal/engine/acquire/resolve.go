package acquire

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// ResolveOwner finds the ownership that an acquisition is for: that of an explicit owner, of the
// hold on the context, or of the owner on the context. Without any of them it returns nil: the
// acquisition needs a fresh owner.
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

// mayEnter refuses an acquisition that could only wait for itself, or that would mix two kinds of
// lock.
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

// HandleFrom returns the innermost live hold of the lock on ctx, or the innermost one if none is
// live, or nil.
func (p *Lock) HandleFrom(ctx context.Context) *hold.Handle {
	return hold.From(ctx, func(b hold.Backend) bool {
		s, is := b.(*ownership.Hold)
		return is && isOf(s, p)
	})
}

// isOf reports whether it is a hold of that lock, or of that side of it, in that client.
func isOf(s *ownership.Hold, p *Lock) bool {
	return isOn(s, &p.Lock, p.Spec.Side) && s.Ownership.Spec.Family == p.Spec.Family
}

// isOn reports whether it is a hold of the key of that lock, or of one side of it, in that client.
func isOn(s *ownership.Hold, p *ownership.Lock, side keyspace.Kind) bool {
	l := s.Ownership.Lock
	return l.Client == p.Client && l.Names.Key == p.Names.Key && l.Spec.Side == side
}

// HoldFrom returns the innermost live hold on ctx of the key of a lock, or of one side of it, or
// nil.
func HoldFrom(ctx context.Context, p *ownership.Lock, side keyspace.Kind) *ownership.Hold {
	for h := range hold.On(ctx) {
		if h.Err() != nil {
			continue // the members of a group that is over are given back a moment later
		}
		found := h.Find(func(b hold.Backend) bool {
			s, is := b.(*ownership.Hold)
			return is && isOn(s, p, side)
		})
		if found != nil && found.Err() == nil {
			return found.Backend().(*ownership.Hold)
		}
	}
	return nil
}
