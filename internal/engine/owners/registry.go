// Package owners has the ownerships of a client together: which one an owner has that the program
// knows, what a grant becomes that nobody waits for, and the end of all when the client closes.
package owners

import (
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// Registry has the ownerships of explicit owners, which can be re-entered, by lock and owner. It
// finds the live ownerships of a client, which its lines have by key.
type Registry struct {
	client *core.Parts
	forget func(*ownership.Ownership) // is remove

	mu     sync.Mutex // guards the fields below
	ByName map[OwnedName]*ownership.Ownership
	Names  map[*ownership.Ownership]OwnedName
}

// OwnedName is the name of an owner on one key: for a lock with two sides, on one of them.
type OwnedName struct {
	Key   string
	Side  keyspace.Kind
	Owner identity.Owner
}

// Of returns the registry of a client. It is one for the owners of all kinds of locks.
func Of(c *core.Parts) *Registry {
	return core.KindState(c, keyspace.KindNone, func() (*Registry, func()) { return newRegistry(c), nil })
}

func newRegistry(c *core.Parts) *Registry {
	r := &Registry{
		client: c,
		ByName: map[OwnedName]*ownership.Ownership{},
		Names:  map[*ownership.Ownership]OwnedName{},
	}
	r.forget = r.remove
	return r
}

// Find returns the ownership of an explicit owner on a lock, which may be live or still acquiring,
// or else a fresh one.
func (r *Registry) Find(p *ownership.Lock, owner identity.Owner) *ownership.Ownership {
	name := OwnedName{p.Names.Key, p.Spec.Side, owner}
	if o := r.Known(name); o != nil && o.MayBeEntered() {
		return o
	}
	return r.NewFor(p, name)
}

// Known returns the ownership that is registered for an explicit owner, or the live one that has
// this owner in Redis, or nil.
func (r *Registry) Known(name OwnedName) *ownership.Ownership {
	if o := r.registered(name); o != nil {
		return o
	}
	if o := liveOn(r.client, name.Key, name.Owner); o != nil && o.Spec.Side == name.Side {
		return o
	}
	return nil
}

// registered returns the ownership that is registered under a name, or nil.
func (r *Registry) registered(name OwnedName) *ownership.Ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ByName[name]
}

// NewFor makes an ownership for an explicit owner, unless another goroutine was quicker. Each
// ownership has its own name in Redis, so that a late command of an earlier one cannot affect it.
// For an owner of this client, that name is an owner with a fresh number. An owner of another
// client keeps its name, and the ownership also has a fresh guest id.
func (r *Registry) NewFor(p *ownership.Lock, name OwnedName) *ownership.Ownership {
	number := r.client.Number()
	wire, isGuest := identity.New(r.client.ID, number), name.Owner.ClientID() != r.client.ID
	if isGuest {
		wire = name.Owner
	}
	o := ownership.New(p, wire, number)
	o.IsGuest, o.Turn.Shown = isGuest, true
	var over *ownership.Ownership
	for {
		known := r.register(name, over, o)
		if known == o || known.MayBeEntered() {
			return known
		}
		over = known
	}
}

// register registers an ownership under a name, in place of one that is over, and returns the
// registered one. It does not look into another ownership: a goroutine that has locked that one may
// be about to lock the registry.
func (r *Registry) register(name OwnedName, over, o *ownership.Ownership) *ownership.Ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.ByName[name]; other != nil && other != over {
		return other
	}
	r.ByName[name], r.Names[o], o.Forget = o, name, r.forget
	return o
}

// Replace registers an ownership under a name, in place of any other.
func (r *Registry) Replace(name OwnedName, o *ownership.Ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ByName[name], r.Names[o], o.Forget = o, name, r.forget
}

// Named returns the owners that the program named, by the owners that represent them in Redis.
func (r *Registry) Named() map[identity.Owner]identity.Owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[identity.Owner]identity.Owner, len(r.Names))
	for o, name := range r.Names {
		if name.Side != keyspace.KindPermit { // which is the same in Redis
			all[o.Owner()] = name.Owner
		}
	}
	return all
}

// remove unregisters an ownership that is over.
func (r *Registry) remove(o *ownership.Ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name, found := r.Names[o]; found {
		delete(r.Names, o)
		if r.ByName[name] == o {
			delete(r.ByName, name)
		}
	}
}

// Nest returns the ownership on the side of p, which reads, for an owner that writes: under a hold
// of it, or, if under is nil, for its owner. It returns nil if the hold has ended: another
// goroutine may write under the same owner by then.
func (r *Registry) Nest(writer *ownership.Ownership, p *ownership.Lock, under *hold.Item) *ownership.Ownership {
	return writer.Nested(under, func() *ownership.Ownership { return r.Nested(p, writer) })
}

// Nested makes an ownership that reads, under the name of an owner that writes.
func (r *Registry) Nested(p *ownership.Lock, writer *ownership.Ownership) *ownership.Ownership {
	o := ownership.New(p, writer.Owner(), r.client.Number())
	o.Sibling = writer
	r.Replace(OwnedName{p.Names.Key, p.Spec.Side, o.Owner()}, o)
	return o
}
