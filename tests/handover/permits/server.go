package permits

import "slices"

// This file has the script that acquires permits, and the fragment that serves the line. Each
// script is atomic. Where one has several outcomes, because a server may still count the
// subscription of a dead client, it calls yield for each.

// script is a state in the middle of a script, and what has gone wrong so far.
type script struct {
	state
	wrong string
}

// blame notes the first thing that goes wrong.
func (x *script) blame(wrong string) {
	if x.wrong == "" {
		x.wrong = wrong
	}
}

// ask is the script that takes permits, or puts the operation into the line.
func (m *Model) ask(x script, c message, yield func(script)) {
	if *x.noted(c.op) == unknown || m.Fault == NoNoteOfAsk && *x.noted(c.op) == taken {
		m.takeOrWait(x, c, yield)
		return
	}
	if *x.noted(c.op) == taken {
		x.raise(m, c.op, lease)
		x.send(message{kind: acquired, op: c.op, age: c.age})
	} // otherwise it is past
	yield(x)
}

// takeOrWait takes permits if nobody waits, or if permits are kept for the operation. Otherwise the
// operation enters the line, which is then served.
func (m *Model) takeOrWait(x script, c message, yield func(script)) {
	o, n := c.op, x.size(c.op)
	marked := x.unmark(o)
	if x.free >= n && (marked || m.nobodyWaits(&x.state)) {
		if !marked {
			m.checkNobodyWaits(&x, n)
		}
		m.take(x, c, yield)
		return
	}
	m.enter(&x, c)
	m.serve(x, o, func(x script, fits bool) {
		if fits {
			m.take(x, c, yield)
			return
		}
		m.refuse(&x, c)
		yield(x)
	})
}

// enter puts the operation into the line, with the ticket that the ask names, even if it is there:
// a late copy of an earlier ask may have put it there with another.
func (m *Model) enter(x *script, c message) {
	ticket := c.ticket
	if m.Fault == ReturnsWithoutTicket {
		ticket = 0
	}
	x.enter(c.op, ticket, m.Fault == TicketOfLateCopy)
	if c.ticket != 0 && x.line[x.place(c.op)].ticket > c.ticket {
		x.blame(Demoted)
	}
}

// nobodyWaits reports whether nobody is in line, and nothing is kept for anybody.
func (m *Model) nobodyWaits(s *state) bool {
	switch m.Fault {
	case NewcomerIgnoresMarks:
		return s.line[0].op == none
	case NewcomerIgnoresLine:
		return m.kept(s) == 0
	}
	return s.line[0].op == none && m.kept(s) == 0
}

// take takes permits, serves whoever else fits, and answers.
func (m *Model) take(x script, c message, yield func(script)) {
	o := c.op
	x.free -= x.size(o)
	if *x.noted(o) == taken {
		x.blame(Sum)
	}
	*x.noted(o) = taken
	x.raise(m, o, lease)
	if m.Fault != TakeLeavesEntry {
		x.leaveLine(o)
	}
	x.send(message{kind: acquired, op: o, age: c.age})
	if m.Fault == TakeServesNobody {
		m.checkNothingRests(&x)
		yield(x)
		return
	}
	m.serve(x, none, func(x script, _ bool) {
		m.checkNothingRests(&x)
		yield(x)
	})
}

// refuse answers an ask with the place of the operation. A large request that is first bars the
// others.
func (m *Model) refuse(x *script, c message) {
	o := c.op
	e := &x.line[x.place(o)]
	first := m.isFirst(&x.state, o)
	e.soon = first && x.clients[o.client()].polls
	if m.Large == Bars && first && x.size(o) > 1 && x.bar == none {
		e.first = true
		if m.Fault != BarWantsFree || x.free > m.kept(&x.state) {
			x.bar, x.barLeft = o, opened
		}
	}
	m.checkNothingRests(x)
	x.send(message{kind: refused, op: o, ticket: e.ticket, soon: e.soon, age: c.age})
}

// isFirst reports whether an operation is the first of the line, not counting pollers that are
// passed over.
func (m *Model) isFirst(s *state, o op) bool {
	for _, e := range s.line {
		if e.op == o {
			return true
		}
		if !s.clients[e.op.client()].polls || e.soon {
			return false
		}
	}
	return false
}

// serve calls the first of the line, or grants them their permits, for as long as some are free and
// not kept for others. It stops at the asker, and then fits is true.
func (m *Model) serve(x script, asker op, yield func(x script, fits bool)) {
	for _, k := range x.marks {
		if k.op != none && !m.counts(k) {
			x.unmark(k.op)
		}
	}
	i := m.nextServed(&x.state, asker)
	if i < 0 {
		yield(x, false)
		return
	}
	m.checkOrder(&x, i)
	o := x.line[i].op
	if o == asker {
		yield(x, true)
		return
	}
	if m.Fault != GrantKeepsEntry {
		x.leaveLine(o)
	}
	listens := !x.clients[o.client()].polls
	if listens && !x.hears(o) { // no receivers: the next one
		m.serve(x, asker, yield)
	}
	c := message{kind: call, op: o}
	if m.Grants {
		c.kind = granted
		x.grant(m, o)
	} else {
		x.mark(o, keeps)
	}
	if x.hears(o) && !slices.Contains(x.flight[:], c) { // a second one adds nothing
		x.send(c)
	} // otherwise the connection still counts, and the message is lost; or it polls, and the mark awaits it
	m.serve(x, asker, yield)
}

// nextServed returns the index in the line of whom to call, or -1.
func (m *Model) nextServed(s *state, asker op) int {
	rest := s.free - m.kept(s)
	for i, e := range s.line {
		if e.op == none || rest <= 0 {
			break
		}
		away := s.clients[e.op.client()].polls && !e.soon && e.op != asker
		switch {
		case away && m.Fault != PollerCalledAtHead: // it keeps its place
		case s.size(e.op) <= rest:
			return i
		case m.barred(s, e.op):
			return -1
		}
	}
	return -1
}

// barred reports whether an operation that does not fit keeps the others waiting.
func (m *Model) barred(s *state, o op) bool {
	return m.Large == Blocks || m.Large == Bars && s.bar == o && s.barLeft == opened
}

// counts reports whether a mark keeps permits.
func (m *Model) counts(k mark) bool {
	return k.left > 0 && (k.left < future || m.Fault == FutureMarkCounts)
}

// kept returns how many permits are kept for those who were called.
func (m *Model) kept(s *state) (n int8) {
	for _, k := range s.marks {
		if k.op != none && m.counts(k) {
			n += s.size(k.op)
		}
	}
	return n
}
