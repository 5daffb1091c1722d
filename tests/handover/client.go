package handover

import "slices"

// This file has what a client does on its own, and how it handles answers and messages.

// begin starts a hold, which the server has granted or which was passed on, and reports what is
// wrong with it.
func (m *Model) begin(s *state, c int, valid uint8, token int8, turn uint8) string {
	p := &s.clients[c]
	o, granted := s.mine(c), p.phase != holding
	p.phase, p.valid, p.token, p.turn = holding, valid, token, turn
	p.since, p.place, p.seen, p.alarm, p.again, p.foreign, p.soon, p.repeats = 0, 0, 0, 0, false, false, false, false
	if s.run != o {
		s.run, s.lasts = o, 0
	}
	higher := token < s.high
	s.high = min(s.high, token)
	switch {
	case granted && !higher:
		return Token
	case s.lasts > 0 && s.lasts >= m.Turn:
		return Turn
	}
	return ""
}

// mayPass reports whether a hold that ends may be passed on in memory.
func (m *Model) mayPass(c *client) bool {
	turn := c.turn > 0 || m.Fault == PassesAfterTurn
	return turn && !m.Fair && c.valid > 0
}

// drop ends the use of an owner for good.
func (c *client) drop(to phase) {
	*c = client{phase: to, left: c.left, number: c.number + 1, born: c.born, deaf: c.deaf, poller: c.poller}
}

// actions yields what a client may do at any time.
func (m *Model) actions(s *state, c int, yield func(step, state)) {
	p := s.clients[c]
	o := s.mine(c)
	try := func(r rule, change func(*state) string) {
		n := *s
		wrong := change(&n)
		yield(step{rule: r, client: c, wrong: wrong}, n)
	}
	switch p.phase {
	case idle:
		if p.left > 0 {
			try(starts, func(n *state) string {
				n.clients[c].phase = waiting
				m.sendAsk(n, c)
				return ""
			})
		}
	case waiting:
		m.waits(s, c, try)
	case holding:
		m.holds(s, c, try)
		if p.valid < m.Lease && !s.flying(o, renew, renewed, denied) {
			try(renews, func(n *state) string {
				n.send(message{kind: renew, owner: o})
				return ""
			})
		}
	case dead:
		try(restarts, func(n *state) string {
			n.clients[c].drop(idle)
			n.clients[c].born = n.clients[c].number
			n.clients[c].deaf = false
			return ""
		})
	}
	if p.deaf && p.phase != dead {
		try(reconnects, func(n *state) string {
			n.clients[c].deaf = false
			if p.phase == waiting && m.Fault != NoPoll {
				m.sendAsk(n, c)
			}
			return ""
		})
	}
}

// waits tries what a client may do while its front waits.
func (m *Model) waits(s *state, c int, try func(rule, func(*state) string)) {
	o := s.mine(c)
	if m.Fault != NoPoll && !s.asking(o) && s.mayPoll(o) {
		r := polls
		if s.clients[c].soon {
			r = pollsSoon
		}
		try(r, func(n *state) string {
			m.sendAsk(n, c)
			return ""
		})
	}
	last := ownerOf(c, s.clients[c].number-1)
	if s.clients[c].repeats && !s.flying(last, release) && !s.flying(o, queued, unqueued, granted) {
		try(repeats, func(n *state) string {
			n.send(message{kind: release, owner: last, next: o})
			return ""
		})
	}
	if s.clients[c].left > 1 { // the entry is for the next in line
		try(givesUpForNext, func(n *state) string {
			n.clients[c].left--
			return ""
		})
	}
	try(givesUp, func(n *state) string {
		n.clients[c].left--
		n.clients[c].drop(idle)
		if m.Fault == OwnerUsedAgain && n.clients[c].left > 0 {
			n.clients[c].number--
		}
		n.send(message{kind: release, owner: o})
		return ""
	})
}

// holds tries what a client may do when its hold ends.
func (m *Model) holds(s *state, c int, try func(rule, func(*state) string)) {
	p, o := s.clients[c], s.mine(c)
	if p.left > 1 && m.mayPass(&p) {
		try(passesOn, func(n *state) string {
			n.clients[c].left--
			return m.begin(n, c, p.valid, p.token, p.turn)
		})
	}
	if p.left > 1 {
		try(endsTurn, func(n *state) string {
			n.clients[c].left--
			n.clients[c].drop(waiting)
			n.send(message{kind: release, owner: o, next: n.mine(c)})
			n.clients[c].repeats = true
			return ""
		})
	}
	if p.left > 1 && m.Fault == PassesInDoubt && m.mayPass(&p) {
		try(passesOn, func(n *state) string {
			n.clients[c].left--
			n.send(message{kind: release, owner: o}) // not answered in time
			return m.begin(n, c, p.valid, p.token, p.turn)
		})
	}
	try(ends, func(n *state) string {
		n.clients[c].left--
		n.clients[c].drop(idle)
		n.send(message{kind: release, owner: o})
		return ""
	})
}

// sendAsk sends an ask.
func (m *Model) sendAsk(s *state, c int) {
	p := &s.clients[c]
	p.alarm, p.again, p.soon = 0, false, false
	if m.Fault == LeaseFromLastAsk {
		p.since = 0
	}
	s.send(message{kind: ask, owner: s.mine(c)})
}

// call makes the client ask. If an ask is in flight, the client asks once more, because the answer
// may be older than the reason to ask.
func (m *Model) call(s *state, c int) {
	switch p := &s.clients[c]; {
	case m.Fault == NoPoll:
	case !s.asking(s.mine(c)):
		m.sendAsk(s, c)
	case m.Fault != CallDropped:
		p.again = true
	}
}

// hears delivers an answer or a message to its client. It reports what is wrong with a hold that
// begins.
func (m *Model) hears(s *state, a message) (wrong string) {
	c := a.owner.client()
	p := &s.clients[c]
	switch a.kind {
	case granted:
		return m.hearsGrant(s, c, a)
	case refused:
		m.hearsRefused(s, c, a)
	case hint:
		switch {
		case !s.current(a.owner) || p.phase != waiting: // a late one, or an answer to an entry made by a late ask
		case a.in == 0:
			m.call(s, c)
		default:
			p.setAlarm(a.in)
		}
	case queued:
		p.repeats = false
	case unqueued: // another release of that owner was executed before: what became of the next owner is not known
		p.repeats = false
		switch m.Fault {
		case NoAnswerHeeded:
		case NextDropped:
			p.drop(idle)
		default:
			m.call(s, c)
		}
	case renewed:
		p.valid = max(p.valid, m.Lease-min(a.age, m.Lease))
	case denied:
		m.lose(s, c)
	}
	return ""
}

func (m *Model) hearsRefused(s *state, c int, a message) {
	p := &s.clients[c]
	if m.Fault == RefusedMovesStamp {
		p.since = min(p.since, a.age)
	}
	if a.since != 0 {
		p.place, p.seen = a.since, a.age
	}
	if a.in > 0 {
		p.setAlarm(a.in)
	}
	p.soon = p.soon || a.soon // a late refusal does not take it back
	learns := a.foreign && !p.foreign
	p.foreign = p.foreign || a.foreign // until it has the lock: an answer may be late
	if learns || p.again {             // subscribed now: it missed any release before that
		m.sendAsk(s, c)
	}
}

// giveBack releases an owner that is used up, unless that release is in flight.
func (s *state) giveBack(o owner) {
	r := message{kind: release, owner: o}
	if !slices.Contains(s.flight[:], r) {
		s.send(r)
	}
}

// setAlarm makes the client ask in that many ticks, unless it is to ask earlier already.
func (c *client) setAlarm(in uint8) {
	if c.alarm == 0 || in < c.alarm {
		c.alarm = in
	}
}

// lose ends a hold that the client can no longer rely on. What the server may still have of it is
// undone.
func (m *Model) lose(s *state, c int) {
	p, o := &s.clients[c], s.mine(c)
	p.left--
	p.drop(idle)
	s.send(message{kind: release, owner: o})
}

func (m *Model) hearsGrant(s *state, c int, a message) (wrong string) {
	p := &s.clients[c]
	adopts := m.Fault == GrantNotChecked && a.message && p.phase == waiting
	if adopts && !s.current(a.owner) {
		p.number = a.owner.number() // the next in line gets it, under that owner
	}
	if !s.current(a.owner) || p.phase != waiting { // nobody wants it any more
		if m.Fault == UnwantedGrantKept {
			return ""
		}
		s.giveBack(a.owner)
		return ""
	}
	lease, age := m.Lease, a.age // of an answer: from when its ask was sent
	if a.message {
		lease, age = m.Short, p.since // of a grant: from the first ask of this owner
	}
	if a.message && a.since != 0 && a.since == p.place {
		age = p.seen // or from the last ask that found the granted place: the grant is later
	}
	if a.message && m.Fault == LeaseFromArrival {
		age = 0
	}
	if lease <= age { // too late to rely on: confirm
		m.call(s, c)
		return ""
	}
	return m.begin(s, c, lease-age, a.token, m.Turn)
}
