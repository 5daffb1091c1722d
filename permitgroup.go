package latchkey

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// freshPermits makes the ownerships of permits that are requested together. The first one requests all of them.
func freshPermits(a *acquisition) (first *ownership, others []*ownership) {
	c, n := a.lock.client, max(a.Together, 1)
	ids := identity.NewPermitIDs(c.ID, c.Number(), n)
	for permitsInUse(c.registry, a.lock.names.Key, ids[0]) { // since before the numbers wrapped around
		ids = identity.NewPermitIDs(c.ID, c.Number(), n)
	}
	return permitsOfIDs(a, ids)
}

// permitsOfIDs makes the ownerships of permits with those ids.
func permitsOfIDs(a *acquisition, ids []string) (first *ownership, others []*ownership) {
	c := a.lock.client
	all := make([]*ownership, len(ids))
	for i, id := range ids {
		o := c.registry.build(&a.lock.primitive, identity.OfText(id), c.Number(), false)
		all[i] = o
		o.special = permitProtocol{leader: ids[0], permanent: a.Permanent}
		c.registry.replace(permitName(a.lock.names.Key, id), o)
	}
	return all[0], all[1:]
}

// permitName returns the name under which a permit is registered. Its id stands for an owner.
func permitName(key, id string) ownedName {
	return ownedName{key: key, side: keyspace.KindPermit, owner: identity.OfText(id)}
}

// permitsInUse reports whether this client holds any permit of a group, or is acquiring one.
func permitsInUse(r *registry, key, first string) bool {
	return slices.ContainsFunc(identity.GroupOf(first), func(id string) bool { return r.known(permitName(key, id)) != nil })
}
