package latchkey

import "sync"

// tenures knows the live tenures of a client by the number that each of them got,
// and those of explicit owners, which can be entered again, by lock and owner.
type tenures struct {
	client *Client

	mu     sync.Mutex
	last   uint64
	live   map[uint64]*tenure
	byName map[ownedName]*tenure
	names  map[*tenure]ownedName
}

type ownedName struct {
	key   string
	side  Kind
	owner Owner
}

func newTenures(c *Client) *tenures {
	return &tenures{
		client: c,
		live:   map[uint64]*tenure{},
		byName: map[ownedName]*tenure{},
		names:  map[*tenure]ownedName{},
	}
}

// number returns a number that this client has not used yet.
func (s *tenures) number() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// find returns the tenure of an explicit owner on a lock, which may be live or
// still being acquired, or else a fresh one.
func (s *tenures) find(p *primitive, owner Owner) *tenure {
	name := ownedName{p.key, p.kind.side, owner}
	if t := s.known(name); t != nil && t.usable() {
		return t
	}
	return s.adopt(p, name)
}

// known returns the tenure of an explicit owner, or the one that the owner was made
// for, or nil.
func (s *tenures) known(name ownedName) *tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byName[name]; t != nil {
		return t
	}
	t := s.live[name.owner.number]
	if t == nil || t.owner != name.owner || t.lock.key != name.key || t.lock.kind.side != name.side {
		return nil
	}
	return t
}

// adopt makes a tenure for an explicit owner, unless another goroutine was quicker.
// Nothing on the wire is used twice, so that a command of an earlier tenure,
// delivered late, cannot touch this one: an owner of this client gets a fresh number,
// and an owner of another client, which has to be itself, a part with a fresh name.
func (s *tenures) adopt(p *primitive, name ownedName) *tenure {
	number := s.number()
	wire, part := Owner{client: s.client.id, number: number}, ""
	if name.owner.client != s.client.id {
		part = wire.String()
		wire = name.owner
	}
	t := s.make(p, wire, number, part)
	var over *tenure
	for {
		known := s.enter(name, over, t)
		if known == t || known.usable() {
			return known
		}
		over = known
	}
}

// enter makes a tenure known by a name, in place of one that is over, and returns the
// one that is known then. It does not look into another tenure: who has the lock of that
// one may be about to come for the lock of these.
func (s *tenures) enter(name ownedName, over, t *tenure) *tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byName[name]; other != nil && other != over {
		return other
	}
	s.byName[name], s.names[t] = t, name
	return t
}

// fresh makes a tenure for an owner that nobody has.
func (s *tenures) fresh(p *primitive) *tenure {
	number := s.number()
	return s.make(p, Owner{client: s.client.id, number: number}, number, "")
}

func (s *tenures) make(p *primitive, owner Owner, number uint64, part string) *tenure {
	return &tenure{
		client: s.client, lock: p, number: number,
		owner: owner, wire: owner.String(), part: part, schedule: newSchedule(),
	}
}

// add makes a tenure known that has begun.
func (s *tenures) add(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[t.number] = t
}

// remove forgets a tenure that is over.
func (s *tenures) remove(t *tenure) {
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

// forgetUnused ends a tenure for which nothing was asked of the server, unless another
// goroutine is about to. One that finds it over resolves its owner anew.
func (t *tenure) forgetUnused() {
	if !t.turn.try() {
		return
	}
	defer t.turn.give()
	t.mu.Lock()
	unused := t.phase == pending
	if unused {
		t.phase = over
	}
	t.mu.Unlock()
	if unused {
		t.client.tenures.remove(t)
	}
}

// all returns the live tenures.
func (s *tenures) all() []*tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*tenure, 0, len(s.live))
	for _, t := range s.live {
		all = append(all, t)
	}
	return all
}
