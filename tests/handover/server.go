package handover

import "slices"

// The scripts. Each is atomic. Where the world decides, for instance whether a server still
// counts the subscription of a client that has died, yield is called for each outcome.

// ask is the script that acquires the lock for an owner, or lets the owner wait.
func (m *Model) ask(s state, c message, yield func(state)) {
	switch {
	case s.owner == c.owner && m.Fault != NoOwnGrantSeen:
		s.ttl, s.brief = max(s.ttl, m.Lease), false
		s.answerGranted(m, c)
	case s.owner == nobody && (!m.Fair || s.queue[0] == nobody || s.queue[0] == c.owner):
		s.leaveQueue(c.owner)
		s.own(c.owner, m.Lease, m.reserved(), m)
		s.answerGranted(m, c)
	case s.owner == nobody: // in order: whoever is first gets it, whoever asks
		s.enqueue(m, c.owner)
		m.grant(s, yield)
		return // if the owner itself is first, the message is the answer
	default:
		if s.owner != c.owner {
			s.enqueue(m, c.owner)
		}
		s.answerRefused(m, c)
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
		s.enqueue(m, c.next)
	}
	if c.next != nobody && !freed && m.Fault != NoAnswerHeeded {
		s.send(message{kind: hint, owner: c.next}) // the answer: it does not wait yet
	}
	if s.owner != nobody {
		if first && m.Fault != NoHintOnLeave && (s.brief || s.owner == stranger) {
			s.hintFirst(m, s.ttl)
		}
		yield(s)
		return
	}
	if freed && s.strangerPhase == waiting { // an open release
		o := s
		o.hintFirst(m, 0)
		yield(o)
	}
	m.grant(s, func(n state) {
		if freed && m.Spared > 0 && n.owner == nobody {
			n.tellStrangers()
		}
		yield(n)
	})
}

// withoutQueue executes an ask or a release that does without the queue, because the server lets
// nobody use its key, for instance while it moves to another node.
func (m *Model) withoutQueue(s state, c message) state {
	s.spared--
	switch {
	case c.kind == release:
		s.releaseAlone(m, c)
	case s.owner == c.owner:
		s.ttl, s.brief = max(s.ttl, m.Lease), false
		s.answerGranted(m, c)
	case s.owner == nobody: // what it has of places stays
		s.own(c.owner, m.Lease, m.reserved(), m)
		s.answerGranted(m, c)
	default: // it hears of the lock as strangers do
		s.send(message{kind: refused, owner: c.owner, foreign: m.Fault != SparedWaits})
	}
	return s
}

// releaseAlone is a release without the queue. Those who stand there are not told, and have to
// poll.
func (s *state) releaseAlone(m *Model, c message) {
	if c.next != nobody && m.Fault != SparedNotHeeded {
		s.send(message{kind: hint, owner: c.next}) // the answer: it does not wait yet
	}
	if s.owner != c.owner {
		return
	}
	s.owner, s.ttl = nobody, 0
	if s.queue[0] != nobody {
		s.calm, s.told = false, false
	}
	s.tellStrangers()
}

// tellStrangers tells those who listen as strangers do that the lock is free.
func (s *state) tellStrangers() {
	for i := range s.clients {
		h := message{kind: hint, owner: s.mine(i)}
		if c := &s.clients[i]; c.foreign && c.phase == waiting && !c.deaf && !slices.Contains(s.flight[:], h) {
			s.send(h)
		}
	}
}

// grant makes the first of the queue who listens the owner of a free lock.
func (m *Model) grant(s state, yield func(state)) {
	o, since := s.queue[0], s.times[0]
	if o == nobody {
		yield(s)
		return
	}
	if m.Fault != GrantKeepsEntry {
		s.leaveQueue(o)
	}
	if !s.hears(o) { // no receivers: the next one
		m.grant(s, yield)
	}
	tokens := m.reserved()
	if m.Fault == EntryWantsLess {
		tokens = 1
	}
	s.own(o, m.Short, tokens, m)
	s.brief = true
	if s.hears(o) {
		s.send(message{kind: granted, owner: o, token: tokens - 1, since: since, message: true})
	} // else the connection still counts, and the message is lost
	if m.Fault != NoHintOfGrant {
		s.hintFirst(m, m.Short)
	}
	yield(s)
}

// renew is the script that prolongs the lease of an owner.
func (m *Model) renew(s state, c message, yield func(state)) {
	switch {
	case s.owner == c.owner:
		s.ttl, s.brief = max(s.ttl, m.Lease), false
		s.send(message{kind: renewed, owner: c.owner, age: c.age})
	case s.owner == nobody && m.Fault == RenewalRevives:
		s.own(c.owner, m.Lease, m.reserved(), m)
		s.send(message{kind: renewed, owner: c.owner, age: c.age})
	default:
		s.send(message{kind: denied, owner: c.owner})
	}
	yield(s)
}

// own makes a free lock the owner's, with tokens for its whole turn.
func (s *state) own(o owner, lease uint8, tokens int8, m *Model) {
	s.owner, s.ttl, s.brief = o, lease, false
	s.reserve(tokens, m.far())
}

// answerGranted tells the owner of the lock its tokens: the last that were reserved.
func (s *state) answerGranted(m *Model, c message) {
	s.send(message{kind: granted, owner: c.owner, age: c.age, token: m.reserved() - 1})
}

// answerRefused tells an owner that waits when the lock expires, if that is the lease of a
// grant: for other leases the model has polls.
func (s *state) answerRefused(m *Model, c message) {
	a := message{kind: refused, owner: c.owner, foreign: s.owner == stranger}
	if s.brief {
		a.in = s.ttl
	}
	if i := s.place(c.owner); i >= 0 && m.Since {
		a.since = s.times[i]
	}
	if m.Fault == RefusedMovesStamp || a.since != 0 {
		a.age = min(c.age, m.Short)
	}
	s.send(a)
}

// hears reports whether the client of an owner gets its messages.
func (s *state) hears(o owner) bool { return s.living(o) && !s.clients[o.client()].deaf }

// hintFirst tells the first of the queue to ask now, or in so many ticks. One that is on its way is
// as good as two. One that only sets an alarm takes no time: the model has polls at any time
// already, and looks whether there is an alarm at all.
func (s *state) hintFirst(m *Model, in uint8) {
	h := message{kind: hint, owner: s.queue[0], in: in}
	switch {
	case h.owner == nobody || !s.hears(h.owner) || m.Fault == NoHint:
	case in > 0:
		m.hears(s, h) // at once: polls come at any time anyway
	case !slices.Contains(s.flight[:], h):
		s.send(h)
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
