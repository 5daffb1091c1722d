package ownership

import (
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
)

// Registry has the ownerships of explicit owners, which can be re-entered, by lock and owner. It finds the live
// ownerships of a client, which its lines have by key.
type Registry struct {
	client *Engine

	mu     sync.Mutex // guards the fields below
	ByName map[OwnedName]*Ownership
	Names  map[*Ownership]OwnedName
}

// OwnedName is the name of an owner on one key: for a lock with two sides, on one of them.
type OwnedName struct {
	Key   string
	Side  keyspace.Kind
	Owner identity.Owner
}

// NewRegistry makes the registry of a client.
func NewRegistry(c *Engine) *Registry {
	return &Registry{
		client: c,
		ByName: map[OwnedName]*Ownership{},
		Names:  map[*Ownership]OwnedName{},
	}
}

// Find returns the ownership of an explicit owner on a lock, which may be live or still acquiring, or else a
// fresh one.
func (r *Registry) Find(p *Lock, owner identity.Owner) *Ownership {
	name := OwnedName{p.Names.Key, p.Spec.Side, owner}
	if o := r.Known(name); o != nil && o.Usable() && o.MayBeEntered(nil) {
		return o
	}
	return r.NewFor(p, name)
}

// Known returns the ownership that is registered for an explicit owner, or the live one that has this owner in
// Redis, or nil.
func (r *Registry) Known(name OwnedName) *Ownership {
	if o := r.registered(name); o != nil {
		return o
	}
	if o := r.liveOn(name.Key, name.Owner); o != nil && o.Lock.Spec.Side == name.Side {
		return o
	}
	return nil
}

// registered returns the ownership that is registered under a name, or nil.
func (r *Registry) registered(name OwnedName) *Ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ByName[name]
}

// NewFor makes an ownership for an explicit owner, unless another goroutine was quicker. Each ownership has its
// own name in Redis, so that a late command of an earlier one cannot affect it. For an owner of this client,
// that name is an owner with a fresh number. An owner of another client keeps its name, and the ownership also
// has a fresh guest id.
func (r *Registry) NewFor(p *Lock, name OwnedName) *Ownership {
	number := r.client.Number()
	wire, isGuest := identity.New(r.client.ID, number), name.Owner.ClientID() != r.client.ID
	if isGuest {
		wire = name.Owner
	}
	o := r.Build(p, wire, number, isGuest)
	o.Local.shown = true
	var over *Ownership
	for {
		known := r.register(name, over, o)
		if known == o || known.Usable() {
			return known
		}
		over = known
	}
}

// register registers an ownership under a name, in place of one that is over, and returns the registered one.
// It does not look into another ownership: a goroutine that has locked that one may be about to lock the
// registry.
func (r *Registry) register(name OwnedName, over, o *Ownership) *Ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.ByName[name]; other != nil && other != over {
		return other
	}
	r.ByName[name], r.Names[o] = o, name
	return o
}

// Replace registers an ownership under a name, in place of any other.
func (r *Registry) Replace(name OwnedName, o *Ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ByName[name], r.Names[o] = o, name
}

// Fresh makes an ownership for a new owner.
func (r *Registry) Fresh(p *Lock) *Ownership {
	number := r.client.Number()
	return r.Build(p, identity.New(r.client.ID, number), number, false)
}

// Build makes an ownership for an owner as it is in Redis. number is its number in this client.
func (r *Registry) Build(p *Lock, owner identity.Owner, number uint64, isGuest bool) *Ownership {
	o := &Ownership{
		Lock: p, Number: number,
		Wire: owner.String(), IsGuest: isGuest,
		Item: renewal.NewItem(),
	}
	o.first.Ownership, o.Holds = o, hold.NewSet(&o.first.Item)
	o.Local.shown, o.Links = p.Spec.Public, line.LinksOf(o)
	return o
}

// liveOn returns the ownership on a key that has begun and is not over, for an owner that this client made, as it is
// in Redis, or nil.
func (r *Registry) liveOn(key string, owner identity.Owner) *Ownership {
	if owner.ClientID() != r.client.ID { // a permit, for one: there may be many of them
		return nil
	}
	wire := owner.String()
	o, _ := r.client.Lines.Find(key, func(h line.Held) bool {
		o := h.(*Ownership)
		return o.Number == owner.Number() && o.Wire == wire
	}).(*Ownership)
	if o == nil || o.CurrentPhase() == Over {
		return nil
	}
	return o
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

// NewestOn returns the newest live ownership of this client on a key, or nil.
func (r *Registry) NewestOn(key string) *Ownership {
	o, _ := r.client.Lines.Find(key, func(line.Held) bool { return true }).(*Ownership)
	return o
}

// remove unregisters an ownership that is over.
func (r *Registry) remove(o *Ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name, found := r.Names[o]; found {
		delete(r.Names, o)
		if r.ByName[name] == o {
			delete(r.ByName, name)
		}
	}
}

// ForgetUnused ends an ownership for which nothing was sent, unless another goroutine is about to use it. A
// call that finds it over resolves its owner again.
func (o *Ownership) ForgetUnused() {
	if !o.sendMu.TryLock() {
		return
	}
	defer o.sendMu.Unlock()
	o.mu.Lock()
	unused := o.Phase == Acquiring
	if unused {
		o.Phase = Over
	}
	o.mu.Unlock()
	if unused {
		o.Lock.Client.Registry.remove(o)
	}
}

// All returns the live ownerships.
func (r *Registry) All() (all []*Ownership) {
	for _, h := range r.client.Lines.Held() {
		all = append(all, h.(*Ownership))
	}
	return all
}
