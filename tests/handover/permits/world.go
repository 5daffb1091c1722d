package permits

import "slices"

// This file has the steps that no client chooses: time, delivery, faults, and strangers.

// tick lets the time pass for which permits are kept, or for which a bar is open or rests. A
// message may stay in flight for any number of ticks.
func (m *Model) tick(s state) state {
	for i := range s.marks {
		if k := &s.marks[i]; k.left > 0 && k.left < future {
			if k.left--; k.left == 0 {
				s.calm = false
			}
		}
	}
	if m.Grants {
		m.tickLeases(&s)
	}
	if s.barLeft > 0 {
		s.calm = false
		if s.barLeft--; s.barLeft == 0 {
			s.bar = none
			for i := range s.line {
				s.line[i].first = false
			}
		}
	}
	return s
}

// deliver executes a command, or hands an answer or a message to its client.
func (m *Model) deliver(s state, f message, yield func(string, state)) {
	each := func(x script) { yield(x.wrong, x.state) }
	x := script{state: s}
	switch f.kind {
	case ask:
		m.ask(x, f, each)
	case release, withdraw, leave:
		m.ends(x, f, each)
	default:
		if !m.useless(&s, f) {
			m.told(&s, f)
		}
		yield("", s)
	}
}

// deliveries yields all possible deliveries, and what faults make of them.
func (m *Model) deliveries(s *state, yield func(step, state)) {
	for i, f := range s.flight {
		if !s.first(i) {
			continue
		}
		n := *s
		n.receive(i)
		m.deliver(n, f, func(wrong string, n state) { yield(step{rule: delivers, item: f, wrong: wrong}, n) })
		if s.faults == 0 {
			continue
		}
		n.faults--
		lost := n
		lost.calm, lost.told = false, false
		yield(step{rule: loses, item: f}, lost)
		if f.kind == release || f.kind == withdraw {
			yield(step{rule: fails, item: f}, m.withoutServing(lost, f))
		}
		late := f
		late.late = true
		n.send(late)
		if !f.late {
			yield(step{rule: delays, item: f}, n)
		}
		m.deliver(n, f, func(wrong string, n state) { yield(step{rule: doubles, item: f, wrong: wrong}, n) })
	}
}

// faults yields the faults of clients and of the server.
func (m *Model) faults(s *state, yield func(step, state)) {
	if s.faults == 0 {
		return
	}
	try := func(st step, change func(*state)) {
		n := *s
		n.faults--
		n.calm = false
		change(&n)
		yield(st, n)
	}
	for i := range s.clients {
		c := s.clients[i]
		if c.phase == waiting || c.phase == holding || c.phase == idle && c.pending != 0 {
			try(step{rule: crashes, client: i}, func(n *state) {
				p := &n.clients[i]
				if c.phase != idle {
					p.shift()
				} else {
					p.number-- // what it settles was the last one
				}
				p.phase, p.pending, p.undoes, n.told = dead, 0, false, false
				p.ticket, p.again, p.deaf, p.foreign, p.soon = 0, false, false, false, false
				p.valid, p.since = 0, 0
			})
		}
		if c.phase == waiting && !c.deaf && !c.polls {
			try(step{rule: disconnects, client: i}, func(n *state) { n.clients[i].deaf, n.told = true, false })
		}
	}
	if m.Failover {
		m.failovers(s, try)
	}
	if m.Clock && s.base == 0 {
		m.clocks(try)
	}
}

// failovers tries failovers that lose the line or the marks, or bring back an entry or a mark.
func (m *Model) failovers(s *state, try func(step, func(*state))) {
	try(step{rule: losesLine}, func(n *state) { n.line = [places]entry{} })
	try(step{rule: losesMarks}, func(n *state) { n.marks, n.bar, n.barLeft = [called]mark{}, none, 0 })
	for c := range s.clients {
		for number, n := range s.clients[c].sizes {
			o := opOf(c, uint8(number))
			if n == 0 {
				continue
			}
			item := message{op: o}
			if s.place(o) < 0 && s.line[places-1].op == none {
				try(step{rule: bringsBackEntry, item: item}, func(n *state) {
					n.eachTicket(func(t *uint8) { *t++ })
					n.enter(o, 1, false)
				})
			}
			if !s.marked(o) && s.marks[called-1].op == none {
				try(step{rule: bringsBackMark, item: item}, func(n *state) { n.mark(o, keeps); n.told = false })
			}
		}
	}
}

// clocks tries a clock of the server that is set back or forward. All marks are then in the future,
// or over.
func (m *Model) clocks(try func(step, func(*state))) {
	set := func(n *state, left uint8) {
		for i := range n.marks {
			if n.marks[i].op != none {
				n.marks[i].left = left
			}
		}
	}
	try(step{rule: clockBack}, func(n *state) {
		set(n, future)
		n.eachTicket(func(t *uint8) { *t += later })
		n.base = later
	})
	try(step{rule: clockAhead}, func(n *state) { set(n, 0) })
}

// strangers yields what a client that knows nothing of the line does: it wants one permit.
func (m *Model) strangers(s *state, yield func(step, state)) {
	n := *s
	switch {
	case s.stranger == idle && s.strangersLeft > 0:
		n.stranger = waiting
		yield(step{rule: strangerComes}, n)
	case s.stranger == waiting && s.free > 0:
		n.stranger = holding
		n.free--
		yield(step{rule: strangerTakes}, n)
	case s.stranger == holding:
		n.stranger = idle
		n.strangersLeft--
		n.free++
		n.tellStrangers()
		yield(step{rule: strangerReleases}, n)
	}
}

// tellStrangers notifies those of the line who listen as strangers do.
func (s *state) tellStrangers() {
	for i := range s.clients {
		h := message{kind: hint, op: s.mine(i)}
		if c := &s.clients[i]; c.foreign && c.phase == waiting && !c.deaf && !slices.Contains(s.flight[:], h) {
			s.send(h)
		}
	}
}
