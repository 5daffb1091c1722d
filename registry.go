package latchkey

import "sync"

// registry knows the live ownerships of a client by the number that each of them got,
// and those of explicit owners, which can be entered again, by lock and owner.
type registry struct {
	client *Client

	mu     sync.Mutex
	last   uint64
	live   map[uint64]*ownership
	byName map[ownedName]*ownership
	names  map[*ownership]ownedName
}

type ownedName struct {
	key   string
	side  Kind
	owner Owner
}

func newRegistry(c *Client) *registry {
	return &registry{
		client: c,
		live:   map[uint64]*ownership{},
		byName: map[ownedName]*ownership{},
		names:  map[*ownership]ownedName{},
	}
}

// number returns a number that this client has not used yet.
func (s *registry) number() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// find returns the ownership of an explicit owner on a lock, which may be live or
// still being acquired, or else a fresh one.
func (s *registry) find(p *primitive, owner Owner) *ownership {
	name := ownedName{p.key, p.spec.side, owner}
	if t := s.known(name); t != nil && t.usable() {
		return t
	}
	return s.newFor(p, name)
}

// known returns the ownership of an explicit owner, or the one that the owner was made
// for, or nil.
func (s *registry) known(name ownedName) *ownership {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byName[name]; t != nil {
		return t
	}
	t := s.live[name.owner.number]
	if t == nil || t.owner != name.owner || t.lock.key != name.key || t.lock.spec.side != name.side {
		return nil
	}
	return t
}

// newFor makes an ownership for an explicit owner, unless another goroutine was quicker.
// Nothing on the wire is used twice, so that a command of an earlier ownership,
// delivered late, cannot touch this one: an owner of this client gets a fresh number,
// and an owner of another client, which has to be itself, a part with a fresh name.
func (s *registry) newFor(p *primitive, name ownedName) *ownership {
	number := s.number()
	wire, part := Owner{client: s.client.id, number: number}, ""
	if name.owner.client != s.client.id {
		part = wire.String()
		wire = name.owner
	}
	t := s.build(p, wire, number, part)
	var over *ownership
	for {
		known := s.register(name, over, t)
		if known == t || known.usable() {
			return known
		}
		over = known
	}
}

// register makes an ownership known by a name, in place of one that is over, and returns the
// one that is known then. It does not look into another ownership: who has the lock of that
// one may be about to come for the lock of these.
func (s *registry) register(name ownedName, over, t *ownership) *ownership {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byName[name]; other != nil && other != over {
		return other
	}
	s.byName[name], s.names[t] = t, name
	return t
}

// replace makes an ownership known by a name, in place of any other.
func (s *registry) replace(name ownedName, t *ownership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name], s.names[t] = t, name
}

// fresh makes an ownership for an owner that nobody has.
func (s *registry) fresh(p *primitive) *ownership {
	number := s.number()
	return s.build(p, Owner{client: s.client.id, number: number}, number, "")
}

func (s *registry) build(p *primitive, owner Owner, number uint64, part string) *ownership {
	t := &ownership{
		client: s.client, lock: p, number: number,
		owner: owner, wire: owner.String(), participantID: part,
		protocol: p.spec.protocol, schedule: newSchedule(),
	}
	t.holds.first.ownership = t
	return t
}

// add makes an ownership known that has begun.
func (s *registry) add(t *ownership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[t.number] = t
}

// remove forgets an ownership that is over.
func (s *registry) remove(t *ownership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, t.number)
	if name, found := s.names[t]; found {
		delete(s.names, t)
		if s.byName[name] == t {
			delete(s.byName, name)
		}
	}
}

// forgetUnused ends an ownership for which nothing was asked of the server, unless another
// goroutine is about to. One that finds it over resolves its owner anew.
func (t *ownership) forgetUnused() {
	if !t.turn.TryLock() {
		return
	}
	defer t.turn.Unlock()
	t.mu.Lock()
	unused := t.phase == acquiring
	if unused {
		t.phase = over
	}
	t.mu.Unlock()
	if unused {
		t.client.registry.remove(t)
	}
}

// all returns the live ownerships.
func (s *registry) all() []*ownership {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*ownership, 0, len(s.live))
	for _, t := range s.live {
		all = append(all, t)
	}
	return all
}
