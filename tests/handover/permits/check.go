package permits

// The properties, by the message for a failure.
const (
	Sum       = "the number plus what was taken is not the total"
	Unfounded = "a client relies on permits that it has not taken"
	Lost      = "permits are taken for an operation that is over"
	Twice     = "an operation that has taken its permits still waits for them"
	Overtaken = "somebody is served before an older one"
	Demoted   = "somebody who returns with a ticket is put behind younger ones"
	Rests     = "permits stay free beside somebody who asks for them"
	Absent    = "permits are kept for a poller that is not about to ask"
	Idle      = "permits are kept for an operation that does not wait, and nothing is under way about it"
)

// Wrong implements [explore.Model].
func (m *Model) Wrong(s state) string {
	sum := s.free
	if s.stranger == holding {
		sum++
	}
	for c := range s.clients {
		p := &s.clients[c]
		for number, n := range p.notes {
			o := opOf(c, uint8(number))
			if n != taken {
				continue
			}
			sum += s.size(o)
			switch {
			case !m.Failover && (s.place(o) >= 0 || s.marked(o)):
				return Twice
			case s.living(o) && o.number() < p.number && p.pending != o.number()+1 && (!m.Grants || s.told && !s.mentioned(o)):
				return Lost
			}
		}
		if p.phase == holding && (*s.noted(s.mine(c)) != taken || p.leases[p.number] < p.valid) {
			return Unfounded
		}
	}
	if sum != m.Total {
		return Sum
	}
	switch {
	case m.absent(&s):
		return Absent
	case m.idle(&s):
		return Idle
	}
	return ""
}

// absent reports whether a poller was called, or granted its permits, that does not know it and
// will not ask soon.
func (m *Model) absent(s *state) bool {
	for c := range s.clients {
		p, o := &s.clients[c], s.mine(c)
		if p.polls && p.phase == waiting && !p.soon && s.calm && !s.mentioned(o) && (s.marked(o) || *s.noted(o) == taken) {
			return true
		}
	}
	return false
}

// idle reports whether a mark is left for an operation that does not wait, although its client has
// got all messages.
func (m *Model) idle(s *state) bool {
	for _, k := range s.marks {
		if k.op == none || !m.counts(k) || !s.told || !s.hears(k.op) || s.waits(k.op) {
			continue
		}
		if !s.mentioned(k.op) {
			return true
		}
	}
	return false
}

func (s *state) marked(o op) bool {
	for _, k := range s.marks {
		if k.op == o {
			return true
		}
	}
	return false
}

// listening reports whether an operation waits, and its client receives what it is told.
func (s *state) listening(o op) bool { return s.waits(o) && s.hears(o) }

// checkOrder checks that nobody older than whom is served waits in the line, except for pollers,
// and large requests that others may pass.
func (m *Model) checkOrder(x *script, i int) {
	rest := x.free - m.kept(&x.state)
	for _, e := range x.line {
		if e.op == none || e.op == x.line[i].op || x.base != 0 || !x.listening(e.op) {
			continue
		}
		rests := x.bar != none && !m.barred(&x.state, e.op)
		passes := x.size(e.op) > rest && m.Large == Bars && (rests || !e.first)
		if e.ticket < x.line[i].ticket && !passes {
			x.blame(Overtaken)
		}
	}
}

// checkNobodyWaits checks that somebody who takes permits without having been called takes them
// from nobody.
func (m *Model) checkNobodyWaits(x *script, n int8) {
	for _, e := range x.line {
		if e.op != none && x.listening(e.op) {
			x.blame(Overtaken)
		}
	}
	rest := x.free - n
	for _, k := range x.marks {
		if k.op != none && k.left > 0 && k.left < future && x.listening(k.op) {
			rest -= x.size(k.op)
		}
	}
	if rest < 0 && n > 0 {
		x.blame(Overtaken)
	}
}

// checkNothingRests checks that whoever asks leaves nothing free that belongs to somebody, by the
// rules without a mistake.
func (m *Model) checkNothingRests(x *script) {
	right := Model{Large: m.Large}
	if right.nextServed(&x.state, none) >= 0 {
		x.blame(Rests)
	}
}

// done reports whether everybody has been served who can be. If prompt is true, pollers do not
// count.
func (m *Model) done(s *state, prompt bool) bool {
	living := m.Total
	for c := range s.clients {
		for number, n := range s.clients[c].notes {
			if o := opOf(c, uint8(number)); n == taken && !s.living(o) && !m.Grants {
				living -= s.size(o)
			}
		}
	}
	for c := range s.clients {
		p := &s.clients[c]
		switch {
		case p.phase == dead, prompt && p.polls && p.phase != holding && p.pending == 0:
			continue
		case p.phase == holding, p.pending != 0, p.phase == idle && p.line[0] != 0:
			return false
		case p.phase == waiting && s.size(s.mine(c)) <= living:
			return false
		}
	}
	return s.strangersLeft == 0 || living <= 0
}
