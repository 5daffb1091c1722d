package permits

// This file has what differs for permits with ids. An operation holds them for a lease, with which
// they come back, so nothing needs to be noted: whoever is first is granted them, for a short
// lease.

// raise extends the lease of permits with ids.
func (s *state) raise(m *Model, o op, to uint8) {
	if left := &s.clients[o.client()].leases[o.number()]; m.Grants {
		*left = max(*left, to)
	}
}

// grant makes an operation hold its permits.
func (s *state) grant(m *Model, o op) {
	s.free -= s.size(o)
	*s.noted(o) = taken
	s.raise(m, o, short)
}

// goBack makes the permits of an operation free, and removes it from the line.
func (s *state) goBack(o op) {
	s.leaveLine(o)
	if *s.noted(o) == taken {
		s.free += s.size(o)
		*s.noted(o) = unknown
		s.clients[o.client()].leases[o.number()] = 0
	}
}

// giveBack is the script that gives permits back, and the undo, and the way out of the line.
func (m *Model) giveBack(x script, c message, yield func(script)) {
	x.goBack(c.op)
	if c.kind != leave {
		x.send(message{kind: answered, op: c.op})
	}
	m.serve(x, none, func(x script, _ bool) { yield(x) })
}

// tickLeases lets the time pass for leases, and for what clients and messages know of them.
func (m *Model) tickLeases(s *state) {
	old := s.flight
	s.flight = [room]message{}
	for _, f := range old {
		switch f.kind {
		case nothing:
			continue
		case ask, acquired, refused:
			f.age = min(f.age+1, lease)
		}
		s.send(f)
	}
	for c := range s.clients {
		p := &s.clients[c]
		for number := range p.leases {
			if p.leases[number] == 0 {
				continue
			}
			if p.leases[number]--; p.leases[number] == 0 {
				s.goBackLate(opOf(c, uint8(number)))
			}
		}
		m.ageClient(s, c)
	}
}

// goBackLate makes permits free whose lease is over. The next script serves with them.
func (s *state) goBackLate(o op) {
	s.free += s.size(o)
	*s.noted(o) = unknown
	s.calm = false
}

// ageClient lets a tick pass for a client. It gives back what it can no longer rely on.
func (m *Model) ageClient(s *state, c int) {
	p := &s.clients[c]
	switch p.phase {
	case waiting:
		p.since = min(p.since+1, short)
	case holding:
		if p.valid--; p.valid == 0 {
			s.send(message{kind: leave, op: s.mine(c)})
			p.drop()
			p.shift()
		}
	}
}
