package handover

import "github.com/latchkey-go/latchkey/tests/handover/explore"

// Canonical implements [explore.Model]: states that differ only in the names of clients are the
// same.
func (m *Model) Canonical(s state) (state, explore.Order) {
	m.simplify(&s)
	order := explore.Sorted(s.rank)
	if order == explore.Unchanged {
		return s, order
	}
	return s.renamed(order), order
}

// simplify removes what can make no difference.
func (m *Model) simplify(s *state) {
	old := s.flight
	s.flight = [room]message{}
	if s.run != nobody && !s.current(s.run) {
		s.run, s.lasts = nobody, 0
	}
	for _, f := range old {
		if f.kind == nothing || m.useless(s, f) {
			continue
		}
		switch {
		case f.kind == granted && !s.current(f.owner) && m.Fault != GrantNotChecked:
			f.age, f.token, f.since = 0, 0, 0
		case (f.kind == ask || f.kind == renew) && !s.current(f.owner),
			f.kind == release && (f.next == nobody || !s.current(f.next)):
			f.age = m.Lease
		case f.kind == refused && f.since != 0 && !s.mayGrant(old[:], f.owner, f.since):
			f.age, f.since = 0, 0
		}
		s.send(f)
	}
	if m.Fault == PlaceKeepsTime {
		return
	}
	for i := range s.clients {
		if c := &s.clients[i]; c.place != 0 && !s.mayGrant(old[:], s.mine(i), c.place) {
			c.place, c.seen = 0, 0
		}
	}
}

// mayGrant reports whether a grant of a place is in flight or may follow. Otherwise it makes no
// difference to anybody since when the owner has been there.
func (s *state) mayGrant(flight []message, o owner, since uint8) bool {
	for _, f := range flight {
		if f.kind == granted && f.owner == o && f.since == since {
			return true
		}
	}
	i := s.place(o)
	return i >= 0 && s.times[i] == since
}

// rank is the key by which clients are ordered.
func (s *state) rank(i int) uint64 {
	c := &s.clients[i]
	k := uint64(c.phase)<<60 | uint64(c.left)<<56 | uint64(c.number)<<52 | uint64(c.born)<<48 |
		uint64(c.valid)<<44 | uint64(uint8(c.token))<<36 | uint64(c.turn)<<28 | uint64(c.since)<<24
	if c.deaf {
		k |= 1 << 23
	}
	if c.foreign {
		k |= 1 << 22
	}
	if c.again {
		k |= 1 << 21
	}
	if c.poller {
		k |= 1 << 63
	}
	if c.repeats {
		k ^= 1 << 19
	}
	if c.soon {
		k ^= 1 << 18
	}
	o := s.mine(i)
	if s.owner == o {
		k |= 1 << 20
	}
	k ^= uint64(s.place(o)+1)<<16 ^ uint64(c.alarm)<<26 ^ uint64(c.place)<<12 ^ uint64(c.seen)<<8
	for _, f := range s.flight { // how much is in flight for it
		if f.kind != nothing && f.owner.client() == i {
			k += 1 << (2 * (uint64(f.kind) % 8))
		}
	}
	return k
}

// renamed gives the clients new names: client order[0] becomes the first, and so on.
func (s *state) renamed(order explore.Order) state {
	n, names := *s, order.Places()
	for to, from := range order {
		n.clients[to] = s.clients[from]
	}
	n.owner, n.run, n.soon = s.owner.renamed(names), s.run.renamed(names), s.soon.renamed(names)
	for i, e := range s.queue {
		n.queue[i] = e.renamed(names)
	}
	n.flight = [room]message{}
	for _, f := range s.flight {
		if f.kind == nothing {
			break
		}
		f.owner, f.next = f.owner.renamed(names), f.next.renamed(names)
		n.send(f)
	}
	return n
}
