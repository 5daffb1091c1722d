package latchkey

import (
	"context"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// An owner can have two ownerships on one read/write lock, one on each side, under the same name on the wire: a
// writer may read. The ownership that reads is then nested in the one that writes. Its own number lets the
// server distinguish it from earlier ones. It may outlive the one that writes.

// resolveSide is [resolveOwner] for the sides of a read/write lock.
func resolveSide(ctx context.Context, a *acquisition) (*ownership, error) {
	p, owner := a.lock, a.named()
	if owner.IsZero() {
		if h := holdFrom(ctx, p, p.spec.side); h != nil {
			a.under = h
			return h.ownership, nil
		}
		if h := holdFrom(ctx, p, p.spec.otherSide()); h != nil {
			if o, err := h.ownership.otherSide(p, h); o != nil || err != nil {
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
	if owner.ClientID() != p.client.id {
		return nil, fault.Invalid("owner %v belongs to another client and cannot join a hold of a read/write lock", owner)
	}
	return p.client.registry.findSide(p, owner)
}

func (s *spec) otherSide() keyspace.Kind {
	if s.side == keyspace.KindRead {
		return keyspace.KindWrite
	}
	return keyspace.KindRead
}

// otherSide returns the ownership on the side of p for an owner that has o on the other side: under a hold of
// it, or, if under is nil, for its owner. It returns nil to read under a hold that has just ended.
func (o *ownership) otherSide(p *primitive, under *holdState) (*ownership, error) {
	switch {
	case p.spec.side == keyspace.KindRead:
		return o.nest(p, under), nil
	case o.isNested() && o.sibling.live():
		return o.sibling, nil
	}
	return nil, fault.ErrUpgrade
}

// nest returns the ownership that reads for an owner that writes: under a hold of it, or, if under is nil, for
// its owner. It returns nil if the hold has ended: another goroutine may write under the same owner by then.
func (o *ownership) nest(p *primitive, under *holdState) *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	if under != nil && !under.Active() {
		return nil
	}
	if o.sibling == nil || !o.sibling.usable() {
		o.sibling = o.lock.client.registry.nested(p, o)
	}
	return o.sibling
}

// nested makes an ownership that reads, under the name of an owner that writes.
func (r *registry) nested(p *primitive, writer *ownership) *ownership {
	number := r.number()
	o := r.build(p, writer.owner(), number, false)
	o.sibling, o.special = writer, readProtocol{number: strconv.FormatUint(number, 10)}
	r.replace(ownedName{p.names.Key, p.spec.side, o.owner()}, o)
	return o
}

// findSide returns the ownership of an explicit owner on a side of a read/write lock.
func (r *registry) findSide(p *primitive, owner identity.Owner) (*ownership, error) {
	if o := r.known(ownedName{p.names.Key, p.spec.side, owner}); o != nil && o.usable() && o.mayBeEntered(nil) {
		return o, nil
	}
	if other := r.known(ownedName{p.names.Key, p.spec.otherSide(), owner}); other != nil && other.live() && other.mayBeEntered(nil) {
		return other.otherSide(p, nil)
	}
	return r.newFor(p, ownedName{p.names.Key, p.spec.side, owner}), nil
}
