package semaphore

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// freshPermits makes the ownerships of permits that are requested together. The first one requests
// all of them.
func freshPermits(a *acquire.Acquisition) (first *ownership.Ownership, others []*ownership.Ownership) {
	c, n := a.Lock.Client, max(a.Together, 1)
	ids := identity.NewPermitIDs(c.ID, c.Number(), n)
	for permitsInUse(owners.Of(c), a.Lock.Names.Key, ids[0]) { // since before the numbers wrapped around
		ids = identity.NewPermitIDs(c.ID, c.Number(), n)
	}
	return OwnershipsOf(a, ids)
}

// OwnershipsOf makes the ownerships of permits with those ids.
func OwnershipsOf(a *acquire.Acquisition, ids []string) (first *ownership.Ownership, others []*ownership.Ownership) {
	c := a.Lock.Client
	all := make([]*ownership.Ownership, len(ids))
	for i, id := range ids {
		o := ownership.New(&a.Lock.Lock, identity.OfText(id), c.Number())
		all[i] = o
		o.Protocol = Protocol{leader: ids[0], permanent: a.Permanent}
		owners.Of(c).Replace(permitName(a.Lock.Names.Key, id), o)
	}
	return all[0], all[1:]
}

// permitName returns the name under which a permit is registered. Its id stands for an owner.
func permitName(key, id string) owners.OwnedName {
	return owners.OwnedName{Key: key, Side: keyspace.KindPermit, Owner: identity.OfText(id)}
}

// permitsInUse reports whether this client holds any permit of a group, or is acquiring one.
func permitsInUse(r *owners.Registry, key, first string) bool {
	return slices.ContainsFunc(identity.GroupOf(first), func(id string) bool {
		return r.Known(permitName(key, id)) != nil
	})
}
