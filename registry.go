package latchkey

import (
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
)

// registry has the ownerships of explicit owners, which can be re-entered, by lock and owner. It finds the live
// ownerships of a client, which its lines have by key.
type registry struct {
	client *engine

	mu     sync.Mutex // guards the fields below
	byName map[ownedName]*ownership
	names  map[*ownership]ownedName
}

type ownedName struct {
	key   string
	side  keyspace.Kind
	owner identity.Owner
}

func newRegistry(c *engine) *registry {
	return &registry{
		client: c,
		byName: map[ownedName]*ownership{},
		names:  map[*ownership]ownedName{},
	}
}

// find returns the ownership of an explicit owner on a lock, which may be live or still acquiring, or else a
// fresh one.
func (r *registry) find(p *primitive, owner identity.Owner) *ownership {
	name := ownedName{p.names.Key, p.spec.side, owner}
	if o := r.known(name); o != nil && o.usable() && o.mayBeEntered(nil) {
		return o
	}
	return r.newFor(p, name)
}

// known returns the ownership that is registered for an explicit owner, or the live one that has this owner in
// Redis, or nil.
func (r *registry) known(name ownedName) *ownership {
	if o := r.registered(name); o != nil {
		return o
	}
	if o := r.liveOn(name.key, name.owner); o != nil && o.lock.spec.side == name.side {
		return o
	}
	return nil
}

// registered returns the ownership that is registered under a name, or nil.
func (r *registry) registered(name ownedName) *ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// newFor makes an ownership for an explicit owner, unless another goroutine was quicker. Each ownership has its
// own name in Redis, so that a late command of an earlier one cannot affect it. For an owner of this client,
// that name is an owner with a fresh number. An owner of another client keeps its name, and the ownership also
// has a fresh guest id.
func (r *registry) newFor(p *primitive, name ownedName) *ownership {
	number := r.client.Number()
	wire, isGuest := identity.New(r.client.ID, number), name.owner.ClientID() != r.client.ID
	if isGuest {
		wire = name.owner
	}
	o := r.build(p, wire, number, isGuest)
	o.local.shown = true
	var over *ownership
	for {
		known := r.register(name, over, o)
		if known == o || known.usable() {
			return known
		}
		over = known
	}
}

// register registers an ownership under a name, in place of one that is over, and returns the registered one.
// It does not look into another ownership: a goroutine that has locked that one may be about to lock the
// registry.
func (r *registry) register(name ownedName, over, o *ownership) *ownership {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.byName[name]; other != nil && other != over {
		return other
	}
	r.byName[name], r.names[o] = o, name
	return o
}

// replace registers an ownership under a name, in place of any other.
func (r *registry) replace(name ownedName, o *ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[name], r.names[o] = o, name
}

// fresh makes an ownership for a new owner.
func (r *registry) fresh(p *primitive) *ownership {
	number := r.client.Number()
	return r.build(p, identity.New(r.client.ID, number), number, false)
}

func (r *registry) build(p *primitive, owner identity.Owner, number uint64, isGuest bool) *ownership {
	o := &ownership{
		lock: p, number: number,
		wire: owner.String(), isGuest: isGuest,
		Item: renewal.NewItem(), entry: noEntry,
	}
	o.holds.first.ownership, o.local.shown, o.links = o, p.spec.public, line.LinksOf(o)
	return o
}

// liveOn returns the ownership on a key that has begun and is not over, for an owner that this client made, as it is
// in Redis, or nil.
func (r *registry) liveOn(key string, owner identity.Owner) *ownership {
	if owner.ClientID() != r.client.ID { // a permit, for one: there may be many of them
		return nil
	}
	wire := owner.String()
	o, _ := r.client.Lines.Find(key, func(h line.Held) bool {
		o := h.(*ownership)
		return o.number == owner.Number() && o.wire == wire
	}).(*ownership)
	if o == nil || o.currentPhase() == over {
		return nil
	}
	return o
}

// named returns the owners that the program named, by the owners that represent them in Redis.
func (r *registry) named() map[identity.Owner]identity.Owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[identity.Owner]identity.Owner, len(r.names))
	for o, name := range r.names {
		if name.side != keyspace.KindPermit { // which is the same in Redis
			all[o.owner()] = name.owner
		}
	}
	return all
}

// newestOn returns the newest live ownership of this client on a key, or nil.
func (r *registry) newestOn(key string) *ownership {
	o, _ := r.client.Lines.Find(key, func(line.Held) bool { return true }).(*ownership)
	return o
}

// remove unregisters an ownership that is over.
func (r *registry) remove(o *ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name, found := r.names[o]; found {
		delete(r.names, o)
		if r.byName[name] == o {
			delete(r.byName, name)
		}
	}
}

// forgetUnused ends an ownership for which nothing was sent, unless another goroutine is about to use it. A
// call that finds it over resolves its owner again.
func (o *ownership) forgetUnused() {
	if !o.sendMu.TryLock() {
		return
	}
	defer o.sendMu.Unlock()
	o.mu.Lock()
	unused := o.phase == acquiring
	if unused {
		o.phase = over
	}
	o.mu.Unlock()
	if unused {
		o.lock.client.registry.remove(o)
	}
}

// all returns the live ownerships.
func (r *registry) all() (all []*ownership) {
	for _, h := range r.client.Lines.Held() {
		all = append(all, h.(*ownership))
	}
	return all
}
