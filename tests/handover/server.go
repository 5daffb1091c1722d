package handover

// The scripts. Each is atomic. Where the world decides, for instance whether a server still
// counts the subscription of a client that has died, yield is called for each outcome.

// ask is the script that acquires the lock for an owner, or lets the owner wait.
func (m *Model) ask(s state, c message, yield func(state)) {
	switch {
	case s.owner == c.owner && m.Fault != NoOwnGrantSeen:
		s.ttl = max(s.ttl, m.Lease)
		s.answerGranted(m, c)
	case s.owner == nobody && (!m.Fair || s.queue[0].owner == nobody || s.queue[0].owner == c.owner):
		s.leaveQueue(c.owner)
		s.own(c.owner, m.Lease, m)
		s.answerGranted(m, c)
	case s.owner == nobody: // in order: whoever is first gets it, whoever asks
		s.enqueue(c.owner, c.age)
		m.grant(s, yield)
		return // if the owner itself is first, the message is the answer
	default:
		if s.owner != c.owner {
			s.enqueue(c.owner, c.age)
		}
		s.send(message{kind: refused, owner: c.owner, foreign: s.owner == stranger})
	}
	yield(s)
}

// release is the script that gives the lock back and grants it to the first of the queue. It
// takes its owner out of the queue as well, so it is also the way out and the undo.
func (m *Model) release(s state, c message, yield func(state)) {
	first := s.leaveQueue(c.owner)
	freed := s.owner == c.owner || s.owner != nobody && m.Fault == ReleaseOfAnyOwner
	if freed {
		s.owner, s.ttl = nobody, 0
	}
	if c.next != nobody && (freed || m.Fault == WaitsInLateRelease) {
		s.enqueue(c.next, c.age)
	}
	if c.next != nobody && !freed && m.Fault != NoAnswerHeeded {
		s.send(message{kind: hint, owner: c.next}) // the answer: it does not wait yet
	}
	if s.owner == stranger && first {
		s.hintFirst(m) // it may not listen to strangers yet
	}
	if s.owner != nobody {
		yield(s)
		return
	}
	if freed && s.strangerPhase == waiting { // an open release
		o := s
		o.hintFirst(m)
		yield(o)
	}
	m.grant(s, yield)
}

// grant makes the first of the queue who listens the owner of a free lock.
func (m *Model) grant(s state, yield func(state)) {
	e := s.queue[0]
	if e.owner == nobody {
		yield(s)
		return
	}
	if m.Fault != GrantKeepsEntry {
		s.leaveQueue(e.owner)
	}
	c := &s.clients[e.owner.client()]
	hears := s.living(e.owner) && !c.deaf
	if !hears { // no receivers: the next one
		m.grant(s, yield)
	}
	s.own(e.owner, m.Short, m)
	if hears {
		s.send(message{kind: granted, owner: e.owner, age: e.age, lease: m.Short, token: m.reserved() - 1, message: true})
	} // else the connection still counts, and the message is lost
	yield(s)
}

// renew is the script that prolongs the lease of an owner.
func (m *Model) renew(s state, c message, yield func(state)) {
	switch {
	case s.owner == c.owner:
		s.ttl = max(s.ttl, m.Lease)
		s.send(message{kind: renewed, owner: c.owner, age: c.age})
	case s.owner == nobody && m.Fault == RenewalRevives:
		s.own(c.owner, m.Lease, m)
		s.send(message{kind: renewed, owner: c.owner, age: c.age})
	default:
		s.send(message{kind: denied, owner: c.owner})
	}
	yield(s)
}

// own makes a free lock the owner's, with tokens for its whole turn.
func (s *state) own(o owner, lease uint8, m *Model) {
	s.owner, s.ttl = o, lease
	s.reserve(m.reserved(), m.far())
}

// answerGranted tells the owner of the lock its tokens: the last that were reserved.
func (s *state) answerGranted(m *Model, c message) {
	s.send(message{kind: granted, owner: c.owner, age: c.age, lease: m.Lease, token: m.reserved() - 1})
}

func (s *state) hintFirst(m *Model) {
	e := s.queue[0]
	if e.owner != nobody && s.living(e.owner) && !s.clients[e.owner.client()].deaf && m.Fault != NoHint {
		s.send(message{kind: hint, owner: e.owner})
	}
}

// reserved is how many tokens go with a turn.
func (m *Model) reserved() int8 {
	if m.Fault == TokensNotReserved {
		return 1
	}
	return int8(m.Passes) + 1
}

// far is a token so old that how old does not matter.
func (m *Model) far() int8 { return 2*int8(m.Passes) + 4 }
