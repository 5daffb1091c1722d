package permits

import "github.com/latchkey-go/latchkey/tests/handover/explore"

// later is more than any ticket in a canonical state.
const later = 32

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
	for _, f := range old {
		if m.useless(s, f) || f.kind == nothing {
			continue
		}
		switch {
		case f.kind == ask && *s.noted(f.op) != unknown && m.Fault != NoNoteOfAsk && !m.Grants:
			f.ticket = 0
		case f.kind == ask && m.Grants && !s.waits(f.op):
			f.age = lease
		case f.kind == refused && m.Fault != LeaseFromRefusal, f.kind == acquired && !s.waits(f.op):
			f.age = 0
		}
		s.send(f)
	}
	m.forgetOver(s)
	s.compress()
}

// forgetOver removes what is remembered of operations that are over and that nothing mentions any
// more.
func (m *Model) forgetOver(s *state) {
	for c := range s.clients {
		p := &s.clients[c]
		for number := range p.number {
			o := opOf(c, number)
			onServer := int(number) >= numbers || p.notes[number] == taken || s.place(o) >= 0 || s.marked(o)
			if m.Failover || onServer || p.pending == number+1 || s.mentioned(o) {
				continue
			}
			p.notes[number], p.sizes[number] = void, 0 // it makes no difference which note
		}
	}
}

// compress numbers the tickets from 1 without gaps.
func (s *state) compress() {
	var used [256]bool
	s.eachTicket(func(t *uint8) { used[*t] = true })
	var to [256]uint8
	n, base := uint8(0), uint8(0)
	for t := range used {
		if !used[t] {
			continue
		}
		n++
		to[t] = n
		if s.base != 0 && base == 0 && t >= int(s.base) {
			base = n
		}
	}
	if s.base != 0 && base == 0 {
		base = later // none is left from before: the next ones are all smaller
	}
	s.eachTicket(func(t *uint8) { *t = to[*t] })
	s.base = base
}

// rank is the key by which clients are ordered.
func (s *state) rank(i int) uint64 {
	c := &s.clients[i]
	k := uint64(0)
	add := func(n uint64, bits int) { k = k<<bits | n }
	add(uint64(c.phase), 2)
	add(uint64(c.line[0]), 2)
	add(uint64(c.line[1]), 2)
	add(uint64(c.number), 3)
	add(uint64(c.born), 3)
	for n := range c.notes {
		add(uint64(c.notes[n]), 2)
		add(uint64(c.sizes[n]), 2)
	}
	for _, n := range c.leases {
		add(uint64(n), 2)
	}
	add(uint64(c.ticket), 4)
	add(uint64(c.valid), 2)
	add(uint64(c.since), 1)
	add(uint64(c.pending), 3)
	for _, b := range [...]bool{c.undoes, c.again, c.deaf, c.foreign, c.polls, c.soon} {
		k <<= 1
		if b {
			k |= 1
		}
	}
	if i := s.place(s.mine(i)); i >= 0 {
		k ^= uint64(i+1) << 40
	}
	for _, f := range s.flight { // how much is in flight for it
		if f.kind != nothing && f.op.client() == i {
			k += 1 << (2 * uint64(f.kind) % 32)
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
	n.bar = s.bar.renamed(names)
	for i := range n.line {
		n.line[i].op = n.line[i].op.renamed(names)
	}
	n.marks = [called]mark{}
	for _, k := range s.marks {
		if k.op != none {
			n.mark(k.op.renamed(names), k.left)
		}
	}
	n.flight = [room]message{}
	for _, f := range s.flight {
		if f.kind != nothing {
			f.op = f.op.renamed(names)
			n.send(f)
		}
	}
	return n
}
