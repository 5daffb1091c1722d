package permits

import "slices"

// This file has what a client does on its own, and how it handles answers and messages.

// drop ends the use of an operation for good.
func (c *client) drop() {
	c.phase, c.number = idle, c.number+1
	c.ticket, c.again, c.foreign, c.soon = 0, false, false, false
	c.valid, c.since = 0, 0
}

// shift lets the first goroutine leave the line.
func (c *client) shift() { c.line[0], c.line[1] = c.line[1], 0 }

// settle begins to release or to withdraw the current operation, which is over.
func (m *Model) settle(s *state, c int, k kind) {
	p := &s.clients[c]
	s.send(message{kind: k, op: s.mine(c)})
	if m.Fault != NotRepeated {
		p.pending, p.undoes = p.number+1, k == withdraw
	}
}

// actions yields what a client may do at any time.
func (m *Model) actions(s *state, c int, yield func(step, state)) {
	p := s.clients[c]
	try := func(r rule, change func(*state)) {
		n := *s
		change(&n)
		yield(step{rule: r, client: c}, n)
	}
	switch p.phase {
	case idle:
		if p.line[0] > 0 {
			try(starts, func(n *state) { m.begin(n, c) })
		}
	case waiting:
		m.waiting(s, c, try)
	case holding:
		if p.pending == 0 {
			try(ends, func(n *state) {
				m.settle(n, c, release)
				n.clients[c].drop()
				n.clients[c].shift()
			})
		}
	case dead:
		try(restarts, func(n *state) {
			n.clients[c].drop()
			n.clients[c].born = n.clients[c].number
		})
	}
	if p.pending != 0 && p.phase != dead {
		m.settling(s, c, try)
	}
	if p.deaf && p.phase != dead {
		try(reconnects, func(n *state) {
			n.clients[c].deaf = false
			if p.phase == waiting && m.Fault != NoPoll {
				m.mustAsk(n, c)
			}
		})
	}
}

// begin makes a new operation for the first goroutine in line. It keeps the ticket of the client,
// if it has one.
func (m *Model) begin(s *state, c int) {
	p := &s.clients[c]
	if int(p.number) >= numbers {
		panic("the model has too few operations")
	}
	p.phase, p.sizes[p.number] = waiting, p.line[0]
	m.sendAsk(s, c)
}

// waiting tries what a client may do while its front waits.
func (m *Model) waiting(s *state, c int, try func(rule, func(*state))) {
	p := s.clients[c]
	if m.Fault != NoPoll && !s.asking(s.mine(c)) {
		r := polls
		if p.soon {
			r = pollsSoon
		}
		try(r, func(n *state) { m.sendAsk(n, c) })
	}
	if p.line[1] > 0 && p.line[1] == p.line[0] { // the place is for the next in line
		try(givesUpForNext, func(n *state) { n.clients[c].shift() })
	}
	if p.pending != 0 {
		return
	}
	if p.line[1] > 0 && p.line[1] != p.line[0] { // so is the ticket
		try(givesUpForNext, func(n *state) {
			m.settle(n, c, withdraw)
			ticket := p.ticket
			n.clients[c].drop()
			n.clients[c].ticket = ticket
			n.clients[c].shift()
			m.begin(n, c)
		})
	}
	try(givesUp, func(n *state) {
		m.settle(n, c, withdraw)
		n.clients[c].drop()
		n.clients[c].shift()
	})
}

// settling tries to repeat a release or a withdrawal whose answer may be lost.
func (m *Model) settling(s *state, c int, try func(rule, func(*state))) {
	o, k := opOf(c, s.clients[c].pending-1), release
	if s.clients[c].undoes {
		k = withdraw
	}
	if !s.flying(o, k, answered) {
		try(repeats, func(n *state) { n.send(message{kind: k, op: o}) })
	}
}

// sendAsk sends an ask, which names the ticket that the client knows.
func (m *Model) sendAsk(s *state, c int) {
	p := &s.clients[c]
	p.again, p.soon = false, false
	s.send(message{kind: ask, op: s.mine(c), ticket: p.ticket})
}

// mustAsk makes the client ask. If an ask is in flight, the client asks once more, because the
// answer may be older than the reason to ask.
func (m *Model) mustAsk(s *state, c int) {
	switch {
	case m.Fault == NoPoll:
	case !s.asking(s.mine(c)):
		m.sendAsk(s, c)
	case m.Fault != CallDropped:
		s.clients[c].again = true
	}
}

// told delivers an answer or a message to its client.
func (m *Model) told(s *state, a message) {
	c := a.op.client()
	p := &s.clients[c]
	switch a.kind {
	case acquired:
		m.obtains(s, a, lease, a.age)
	case granted:
		age := p.since
		if m.Fault == LeaseFromArrival {
			age = 0
		}
		m.obtains(s, a, short, age)
	case refused:
		if m.Fault == LeaseFromRefusal {
			p.since = min(p.since, a.age)
		}
		if p.ticket == 0 || a.ticket < p.ticket {
			p.ticket = a.ticket
		}
		p.soon = p.soon || a.soon // a late refusal does not take it back
		learns := m.Strangers > 0 && m.Fault != StrangersNotHeard && !p.foreign && !p.polls
		p.foreign = p.foreign || learns
		if learns || p.again { // subscribed now: it missed any release before that
			m.sendAsk(s, c)
		}
	case hint:
		m.mustAsk(s, c)
	case call:
		m.calledFor(s, c, a.op)
	case answered:
		p.pending, p.undoes = 0, false
	}
}

// obtains begins a hold. The lease of permits with ids counts from when its ask was sent, or from
// the first ask if they were granted: a grant can be no older. If nobody waits for them, they go
// back.
func (m *Model) obtains(s *state, a message, lease, age uint8) {
	c := a.op.client()
	p := &s.clients[c]
	switch {
	case !s.waits(a.op):
		if back := (message{kind: leave, op: a.op}); !slices.Contains(s.flight[:], back) {
			s.send(back)
		}
		return
	case m.Grants && lease <= age: // too late to rely on: confirm
		m.mustAsk(s, c)
		return
	case m.Grants:
		p.valid = lease - age
	}
	p.phase, p.since = holding, 0
	p.ticket, p.again, p.foreign, p.soon = 0, false, false, false
}

// calledFor handles a call. If the operation does not wait, it gives back the place, but not what
// the operation took.
func (m *Model) calledFor(s *state, c int, o op) {
	if s.waits(o) {
		if m.Fault == NoPoll {
			m.sendAsk(s, c)
			return
		}
		m.mustAsk(s, c)
		return
	}
	back := message{kind: leave, op: o}
	if m.Fault == UndoesForCall {
		back.kind = withdraw
	}
	if !slices.Contains(s.flight[:], back) {
		s.send(back)
	}
}
