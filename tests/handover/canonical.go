package handover

// canonical returns the state without details that make no difference, and with the clients in a fixed order: states
// that differ only in the names of clients are the same.
func (m *Model) canonical(s state) state {
	s, _ = m.ordered(s)
	return s
}

// ordered is canonical, and also reports which client has which new place.
func (m *Model) ordered(s state) (state, [clients]int) {
	m.simplify(&s)
	var order [clients]int
	var keys [clients]uint64
	for i := range order {
		order[i], keys[i] = i, s.rank(i)
	}
	for i := 1; i < clients; i++ {
		for j := i; j > 0 && keys[order[j]] < keys[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	if order == [clients]int{0, 1, 2} {
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

// mayGrant reports whether a grant of a place is in flight or may follow. Otherwise it makes no difference to anybody
// since when the owner has been there.
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
func (s *state) renamed(order [clients]int) state {
	n := *s
	var name [clients]int
	for to, from := range order {
		name[from] = to
		n.clients[to] = s.clients[from]
	}
	rename := func(o owner) owner {
		if o == nobody || o == stranger {
			return o
		}
		return ownerOf(name[o.client()], o.number())
	}
	n.owner, n.run, n.soon = rename(s.owner), rename(s.run), rename(s.soon)
	for i, e := range s.queue {
		n.queue[i] = rename(e)
	}
	n.flight = [room]message{}
	for _, f := range s.flight {
		if f.kind == nothing {
			break
		}
		f.owner, f.next = rename(f.owner), rename(f.next)
		n.send(f)
	}
	return n
}
